// What classifiers, taggers and tree networks say of texts: asked of the service, and drawn.
import {ask} from "../api.js";
import {html, percent} from "../ui.js";

/** @typedef {import("../types").Model} Model */

/**
 * @param {Model} model @param {(string | string[])[]} texts those of a tagger may be ready tokens
 * @param {AbortSignal} signal
 * @returns {Promise<any[]>}
 */
export async function answers(model, texts, signal) {
  const [path, given] = model.task === "tree" ? ["/v1/predict", {records: texts}] : model.task === "classify" ? ["/v1/classify", {input: texts}]
    : ["/v1/tag", Array.isArray(texts[0]) ? {tokens: texts} : {input: texts}];
  return (await ask(path, {model: model.id, ...given}, signal)).results;
}

/** What a model says of a text; `changed` are tokens whose tags are others than before. @param {{answer: any, changed?: Set<number>}} props */
export const Answer = ({answer, changed}) => answer.probabilities ? html`<${Probabilities} answer=${answer} />` : html`<${Tagged} answer=${answer} changed=${changed} />`;

const SHOWN = 12;  // classes

/** @param {{answer: any}} props */
export function Probabilities({answer}) {
  const shown = Object.entries(answer.probabilities).sort(([, a], [, b]) => b - a).slice(0, SHOWN);
  return html`<p class="label"><strong>${answer.label ?? (answer.labels.join(", ") || "none")}</strong></p>
    <table class="cells"><tbody>${shown.map(([label, probability]) => html`<tr><th scope="row">${label}</th>
      <td><meter min="0" max="1" value=${probability} aria-hidden="true"></meter></td><td class="number">${percent(probability)}</td></tr>`)}</tbody></table>`;
}

/** Spans drawn on the text, or a tag below each word. @param {{answer: any, changed?: Set<number>}} props */
function Tagged({answer, changed}) {
  const {tokens, tags, spans} = answer, plain = tags.every((/** @type {string} */ tag) => tag === "O");
  if (plain) return html`<p class="text" dir="auto">${answer.text}</p><p class="quietly">nothing was found</p>`;
  if (!spans?.length || changed?.size) return html`<p class="tags" dir="auto">${tokens.map((/** @type {string} */ token, /** @type {number} */ place) => html`
    <span class=${`tagged ${changed?.has(place) ? "changed" : ""}`}><span>${token}</span><small>${tags[place]}</small></span>`)}</p>`;
  const names = [...new Set(spans.map((/** @type {any} */ span) => span.type))];
  const characters = [...answer.text];  // code points, which is what places are counted in
  const parts = [];
  let place = 0;
  for (const span of spans) {
    parts.push(characters.slice(place, span.start).join(""));
    parts.push(html`<span class=${`span n${names.indexOf(span.type) % 8}`}>${span.text}<small>${span.type}</small></span>`);
    place = span.end;
  }
  parts.push(characters.slice(place).join(""));
  return html`<p class="text" dir="auto">${parts}</p>`;
}

/** Tokens whose tags are others than they were, where a text was changed in the middle. @param {any} before @param {any} after @returns {Set<number>} */
export function changedTags(before, after) {
  const found = /** @type {Set<number>} */ (new Set()), [old, now] = [before.tokens, after.tokens];
  let start = 0, end = 0;
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) start++;
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  for (let place = 0; place < start; place++) if (before.tags[place] !== after.tags[place]) found.add(place);
  for (let back = 1; back <= end; back++) if (before.tags.at(-back) !== after.tags.at(-back)) found.add(now.length - back);
  return found;
}
