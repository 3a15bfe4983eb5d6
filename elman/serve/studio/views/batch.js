// Many texts at once: pasted lines or a file, as a table that can be filtered and downloaded; with labels, a confusion matrix.
import {address, go} from "../address.js";
import {Refused} from "../api.js";
import {SaveTexts, tablePicture} from "../draw.js";
import {Choice, download, Field, html, percent, Slider, Trouble, useDropped, useRef, useRequest, useSignal} from "../ui.js";
import {answers} from "./answers.js";
import {readTexts, writeTable} from "./tables.js";

/** @typedef {import("../types").Model} Model */
/** @typedef {import("../types").Studio} Studio */
/** @typedef {import("./tables.js").Given & {found: string[], shown: string, probability: number | null}} Row */

const MOST = 10_000, AT_ONCE = 200, SHOWN = 500;
const NO_FILTER = {only: undefined, least: undefined, cell: undefined};

/** What was found for a text: its label, or the tags of its tokens. @param {any} answer */
function foundOf(answer) {
  if (answer.tags) {
    const shown = answer.spans?.length ? answer.spans.map((/** @type {any} */ span) => `${span.type}: ${span.text}`).join("; ") : answer.tags.join(" ");
    return {found: answer.tags, shown, probability: null};
  }
  const label = answer.label ?? answer.labels.join(" ");
  return {found: [label], shown: label, probability: answer.probabilities[answer.label] ?? Math.max(.../** @type {number[]} */ (Object.values(answer.probabilities)))};
}

/** @param {{model: Model, studio: Studio}} props */
export function Batch({model, studio}) {
  const pasted = useSignal(""), done = useSignal("");
  const {answer, error, busy, run, stop} = useRequest();
  const rows = /** @type {Row[]} */ (answer.value ?? []), {only = "", cell = ""} = address.value, least = Number(address.value.least ?? 0);
  const tagger = model.task === "tag", sure = rows.some(({probability}) => probability !== null);
  const labels = [...new Set(rows.flatMap(({found, gold}) => gold ? [...found, ...gold] : found))].sort();
  const labelled = rows.filter(({gold}) => gold !== null), [right, wrong] = cell.split("\t");
  const kept = rows.filter(({found, gold, probability}) => (!only || found.includes(only)) && (probability ?? 1) >= least
    && (!cell || gold?.some((one, place) => one === right && found[place] === wrong)));
  /** @param {Blob} file */
  const read = (file) => run(async (signal) => {
    let texts;
    try {
      texts = readTexts(await file.text(), tagger ? model.tags : undefined).slice(0, MOST);
    } catch (caught) {
      throw new Refused(`this cannot be read as lines, a table or JSON lines: ${/** @type {Error} */ (caught).message}`);
    }
    if (!texts.length) throw new Refused("there is no text in this: give lines, or a table with a column text");
    const some = Math.min(AT_ONCE, studio.limits.max_texts), all = [];
    for (let start = 0; start < texts.length; start += some) {
      done.value = `${start.toLocaleString("en")} of ${texts.length.toLocaleString("en")}`;
      const given = texts.slice(start, start + some), results = await answers(model, given.map(({text, tokens}) => tokens ?? text), signal);
      all.push(...given.map((row, place) => ({...row, ...foundOf(results[place])})));
    }
    go(NO_FILTER);
    return all;
  });
  /** @param {File} file */
  const take = (file) => {
    go({many: "1"});
    read(file);
  };
  const over = useDropped(take, [model.id]);
  const save = () => download(writeTable(["text", "label", "predicted", "probability"],
    kept.map(({text, gold, shown, probability}) => [text, gold?.join(" "), shown, probability])), "predictions.csv", "text/csv");
  return html`<details class="batch" open=${address.value.many === "1"} onToggle=${(/** @type {any} */ e) => go({many: e.target.open ? "1" : undefined})}><summary>Many texts</summary>
    <div class=${`drop ${over.value ? "over" : ""}`}>
      <${Field} name=${`Paste lines, or drop a file anywhere on the page: lines of text, ${tagger ? "tokens with their tags" : "a table or JSON lines with text and, if you like, label"}`}>
        <textarea value=${pasted} onInput=${(/** @type {any} */ e) => { pasted.value = e.target.value; }}></textarea><//>
      <div class="row"><button type="button" disabled=${busy.value || !pasted.value.trim()} onClick=${() => read(new Blob([pasted.value]))}>Read them</button>
        <${Field} name="file"><input type="file" accept=".txt,.csv,.tsv,.jsonl,.conll,.conllu" onChange=${(/** @type {any} */ e) => { if (e.target.files[0]) take(e.target.files[0]); }} /><//>
        ${busy.value && html`<span class="quietly" role="status">${done.value}</span><button type="button" class="quiet" onClick=${stop}>Stop</button>`}</div></div>
    <${Trouble} error=${error.value} />
    ${rows.length > 0 && html`
      ${labelled.length > 0 && html`<${Confusion} rows=${labelled} labels=${labels} chosen=${cell} tagger=${tagger} />`}
      <div class="row">
        ${labels.length <= 100 && html`<${Choice} name="label" value=${only} choices=${[["", "all"], ...labels]} change=${(/** @type {string} */ value) => go({only: value})} />`}
        ${sure && html`<${Slider} name="at least" value=${least} low=${0} high=${1} step=${0.01} change=${(/** @type {number} */ value) => go({least: value || undefined})} />`}
        <span role="status">${kept.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")}</span>
        <button type="button" class="quiet" onClick=${save}>download CSV</button></div>
      <div class="scroll"><table class="cells"><thead><tr><th scope="col">text</th>${labelled.length > 0 && html`<th scope="col">label</th>`}<th scope="col">predicted</th>${sure && html`<th scope="col" class="number">probability</th>`}</tr></thead>
        <tbody>${kept.slice(0, SHOWN).map(({text, gold, shown, probability}) => html`<tr><td dir="auto">${text}</td>${labelled.length > 0 && html`<td>${gold?.join(" ")}</td>`}<td>${shown}</td>
          ${sure && html`<td class="number">${probability === null ? "" : percent(probability)}</td>`}</tr>`)}</tbody></table></div>
      ${kept.length > SHOWN && html`<p class="quietly">The first ${SHOWN} are shown; the download has all.</p>`}`}</details>`;
}

/** How often each label was taken for each. @param {{rows: Row[], labels: string[], chosen: string, tagger: boolean}} props */
function Confusion({rows, labels, chosen, tagger}) {
  const table = useRef(/** @type {HTMLTableElement | null} */ (null)), counts = /** @type {Map<string, number>} */ (new Map());
  let right = 0, all = 0;
  for (const {gold, found} of rows) {
    gold?.forEach((label, place) => {
      counts.set(`${label}\t${found[place]}`, (counts.get(`${label}\t${found[place]}`) ?? 0) + 1);
      right += Number(label === found[place]);
      all++;
    });
  }
  const most = Math.max(...counts.values());
  return html`<p>${percent(right / all)} ${tagger ? "of the tags" : ""} are right. Rows are the labels that were given, columns those that were predicted; a cell shows its texts.</p>
    <div class="scroll"><table class="map numbers confusion" ref=${table}><tbody><tr><td class="corner"></td>${labels.map((label) => html`<th scope="col">${label}</th>`)}</tr>
      ${labels.map((gold) => html`<tr><th scope="row">${gold}</th>${labels.map((label) => {
        const count = counts.get(`${gold}\t${label}`) ?? 0, here = chosen === `${gold}\t${label}`;
        return html`<td class=${`s${Math.round(20 * Math.sqrt(count / most))} ${here ? "m" : ""}`}><button type="button" aria-pressed=${here} aria-label=${`${gold} taken for ${label}: ${count}`}
          onClick=${() => go({cell: here ? undefined : `${gold}\t${label}`}, {step: true})}>${count}</button></td>`;
      })}</tr>`)}</tbody></table></div>
    <${SaveTexts} svg=${() => tablePicture(/** @type {HTMLTableElement} */ (table.current))} data=${{labels, counts: labels.map((gold) => labels.map((label) => counts.get(`${gold}\t${label}`) ?? 0))}} name="confusion" />`;
}
