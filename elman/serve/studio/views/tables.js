// Files of texts as they are dropped or pasted: lines, tables, JSON lines, and tagged tokens; and tables as they are saved.

/** @typedef {{text: string, tokens?: string[], gold: string[] | null}} Given A text, and its label or the tags of its tokens where it has some. */

/**
 * The texts of a file: lines; of a table with the columns `text` and perhaps `label`, its rows; of a tagger, sentences of tokens a line.
 * @param {string} content @param {string[]} [tags] those of a tagger
 * @returns {Given[]}
 */
export function readTexts(content, tags) {
  const text = content.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  if (/^\s*\{/.test(text)) return records(text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line)));
  if (tags) {
    const found = sentences(text, tags);
    if (found) return found;
  }
  const first = text.split("\n", 1)[0], mark = first.includes("\t") ? "\t" : ",";
  const header = split(first, mark)[0]?.map((cell) => cell.trim().toLowerCase()) ?? [];
  if (!header.includes("text")) return text.split("\n").filter((line) => line.trim()).map((line) => ({text: line, gold: null}));
  return records(split(text, mark).slice(1).map((cells) => Object.fromEntries(header.map((name, place) => [name, cells[place]]))));
}

/** @param {any[]} rows @returns {Given[]} */
const records = (rows) => rows.filter(({text}) => typeof text === "string" && text.trim())
  .map(({text, label}) => ({text, gold: label === undefined || label === null || label === "" ? null : [String(label)]}));

/**
 * The cells of a table: between quotes there may be marks, line ends and doubled quotes.
 * @param {string} text @param {string} mark
 */
function split(text, mark) {
  const rows = /** @type {string[][]} */ ([]);
  let row = /** @type {string[]} */ ([]), cell = "", quoted = false;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (quoted) {
      if (sign !== '"') cell += sign;
      else if (text[at + 1] === '"') cell += text[++at];
      else quoted = false;
    } else if (sign === '"' && !cell && mark === ",") quoted = true;
    else if (sign === mark || sign === "\n") {
      row.push(cell);
      cell = "";
      if (sign === "\n") {
        if (row.some(Boolean)) rows.push(row);
        row = [];
      }
    } else cell += sign;
  }
  row.push(cell);
  if (row.some(Boolean)) rows.push(row);
  return rows;
}

/**
 * Sentences of CoNLL's formats: a token a line, its tag in the column that has most of the model's; null where the text is none.
 * @param {string} text @param {string[]} tags @returns {Given[] | null}
 */
function sentences(text, tags) {
  /** Schemes differ, what they mark does not. @param {string} tag */
  const marked = (tag) => tag.replace(/^[BIESLU]-/, "");
  const known = new Set(tags.map(marked));
  const blocks = text.split(/\n[ \t]*\n/).map((block) => block.split("\n").filter((line) => line.trim() && !line.startsWith("#")).map((line) => line.trim().split(/\t| +/)))
    .filter((lines) => lines.length);
  const lines = blocks.flat(), width = lines.reduce((least, cells) => Math.min(least, cells.length), Infinity);
  if (!lines.length || width < 2) return null;
  const counts = Array.from({length: width}, (_, column) => lines.filter((cells) => known.has(marked(cells[column]))).length);
  const column = counts.indexOf(Math.max(...counts));
  if (!column || counts[column] < 0.8 * lines.length) return null;
  const numbered = lines.every((cells) => /^\d+([-.]\d+)?$/.test(cells[0])), token = numbered ? 1 : 0;
  return blocks.map((block) => block.filter((cells) => !numbered || /^\d+$/.test(cells[0]))).filter((block) => block.length).map((block) => {
    const tokens = block.map((cells) => cells[token]);
    return {text: tokens.join(" "), tokens, gold: block.map((cells) => cells[column])};
  });
}

/** @param {string[]} header @param {unknown[][]} rows */
export function writeTable(header, rows) {
  /** @param {unknown} value */
  const quoted = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
  return [header.join(","), ...rows.map((row) => row.map(quoted).join(","))].join("\n") + "\n";
}
