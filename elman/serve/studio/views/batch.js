// Many texts at once: pasted lines or a file, as a table that can be filtered and downloaded; with labels, a confusion matrix.
import {ask} from "../api.js";
import {Choice, download, Field, html, percent, Slider, Trouble, useRequest, useSignal} from "../ui.js";

/** @typedef {import("../types").Model} Model */
/** @typedef {{text: string, gold: string | null, label: string, probability: number | null}} Row */

/** Where a model of a task is asked. @type {Record<string, string>} */
export const PATHS = {classify: "/v1/classify", tag: "/v1/tag", tree: "/v1/classify"};

const MOST = 10_000, AT_ONCE = 200, SHOWN = 500;

/**
 * Lines of text; of a table (a header with `text`, and perhaps `label`), its texts and labels.
 * @param {string} content @returns {{text: string, gold: string | null}[]}
 */
export function readLines(content) {
  const lines = content.replace(/\r\n?/g, "\n").split("\n").filter((line) => line.trim());
  const header = cells(lines[0] ?? "").map((cell) => cell.trim().toLowerCase());
  const [text, label] = [header.indexOf("text"), header.indexOf("label")];
  if (text < 0) return lines.slice(0, MOST).map((line) => ({text: line, gold: null}));
  return lines.slice(1, MOST + 1).map((line) => {
    const row = cells(line);
    return {text: row[text] ?? "", gold: label < 0 ? null : row[label] ?? null};
  }).filter((row) => row.text.trim());
}

/** @param {string} line */
function cells(line) {
  if (line.includes("\t")) return line.split("\t");
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain);
}

/** @param {any} found */
function written(found) {
  if (found.probabilities) return {label: found.label ?? found.labels.join(" "), probability: found.probability ?? Math.max(.../** @type {number[]} */ (Object.values(found.probabilities)))};
  return {label: found.spans?.length ? found.spans.map((/** @type {any} */ span) => `${span.type}: ${span.text}`).join("; ") : found.tags.join(" "), probability: null};
}

/** @param {{model: Model}} props */
export function Batch({model}) {
  const pasted = useSignal(""), only = useSignal(""), least = useSignal(0), cell = useSignal(/** @type {[string, string] | null} */ (null));
  const {answer, error, busy, run} = useRequest();
  const rows = /** @type {Row[]} */ (answer.value ?? []);
  const labels = [...new Set(rows.flatMap(({label, gold}) => gold === null ? [label] : [label, gold]))].sort();
  const labelled = rows.some(({gold}) => gold !== null);
  const kept = rows.filter(({label, gold, probability}) => (!only.value || label === only.value) && (probability === null || probability >= least.value)
    && (!cell.value || (gold === cell.value[0] && label === cell.value[1])));
  /** @param {string} content */
  const read = (content) => run(async (signal) => {
    const texts = readLines(content), found = [];
    for (let start = 0; start < texts.length; start += AT_ONCE) {
      const some = texts.slice(start, start + AT_ONCE);
      const {results} = await ask(PATHS[model.task], {model: model.id, input: some.map(({text}) => text)}, signal);
      found.push(...some.map((row, place) => ({...row, ...written(results[place])})));
    }
    [only.value, least.value, cell.value] = ["", 0, null];
    return found;
  });
  /** @param {DragEvent | Event} event */
  async function file(event) {
    event.preventDefault();
    const files = /** @type {DragEvent} */ (event).dataTransfer?.files ?? /** @type {HTMLInputElement} */ (event.target).files;
    if (files?.[0]) read(await files[0].text());
  }
  return html`<details class="batch"><summary>Many texts</summary>
    <div class="drop" onDragOver=${(/** @type {Event} */ e) => e.preventDefault()} onDrop=${file}>
      <${Field} name="Paste lines, or drop a file: lines of text, or a table with the columns text and, if you like, label">
        <textarea value=${pasted} onInput=${(/** @type {any} */ e) => { pasted.value = e.target.value; }}></textarea><//>
      <div class="row"><button type="button" disabled=${busy.value || !pasted.value.trim()} onClick=${() => read(pasted.value)}>Read them</button>
        <${Field} name="file"><input type="file" accept=".txt,.csv,.tsv" onChange=${file} /><//></div></div>
    <${Trouble} error=${error.value} />
    ${rows.length > 0 && html`
      ${labelled && html`<${Confusion} rows=${rows} labels=${labels} chosen=${cell} />`}
      <div class="row">
        ${labels.length <= 100 && html`<${Choice} name="label" value=${only.value} choices=${[["", "all"], ...labels]} change=${(/** @type {string} */ value) => { only.value = value; }} />`}
        <${Slider} name="at least" value=${least.value} low=${0} high=${1} step=${0.01} change=${(/** @type {number} */ value) => { least.value = value; }} />
        <span role="status">${kept.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")}</span>
        <button type="button" class="quiet" onClick=${() => download(csv(kept), "predictions.csv", "text/csv")}>download CSV</button></div>
      <div class="scroll"><table class="cells"><thead><tr><th scope="col">text</th>${labelled && html`<th scope="col">label</th>`}<th scope="col">predicted</th><th scope="col" class="number">probability</th></tr></thead>
        <tbody>${kept.slice(0, SHOWN).map(({text, gold, label, probability}) => html`<tr><td dir="auto">${text}</td>${labelled && html`<td>${gold}</td>`}<td>${label}</td><td class="number">${probability === null ? "" : percent(probability)}</td></tr>`)}</tbody></table></div>
      ${kept.length > SHOWN && html`<p class="quietly">The first ${SHOWN} are shown; the download has all.</p>`}`}</details>`;
}

/** @param {{rows: Row[], labels: string[], chosen: {value: [string, string] | null}}} props */
function Confusion({rows, labels, chosen}) {
  const counts = new Map();
  for (const {gold, label} of rows) counts.set(`${gold}\t${label}`, (counts.get(`${gold}\t${label}`) ?? 0) + 1);
  const most = Math.max(...counts.values()), right = rows.filter(({gold, label}) => gold === label).length;
  return html`<p>${percent(right / rows.length)} are right. A cell shows its texts.</p>
    <div class="scroll"><table class="map numbers confusion"><tbody><tr><td class="corner"></td>${labels.map((label) => html`<th scope="col">${label}</th>`)}</tr>
      ${labels.map((gold) => html`<tr><th scope="row">${gold}</th>${labels.map((label) => {
        const count = counts.get(`${gold}\t${label}`) ?? 0;
        const here = chosen.value?.[0] === gold && chosen.value?.[1] === label;
        return html`<td class=${`s${Math.round(20 * Math.sqrt(count / most))} ${here ? "m" : ""}`}><button type="button" aria-pressed=${here} aria-label=${`${gold} taken for ${label}: ${count}`}
          onClick=${() => { chosen.value = here ? null : [gold, label]; }}>${count}</button></td>`;
      })}</tr>`)}</tbody></table></div>`;
}

/** @param {Row[]} rows */
function csv(rows) {
  /** @param {unknown} value */
  const quoted = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
  return ["text,label,predicted,probability", ...rows.map(({text, gold, label, probability}) => [text, gold, label, probability].map(quoted).join(","))].join("\n") + "\n";
}
