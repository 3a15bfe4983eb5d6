// Read: a classifier, tagger or tree network answers as one types; what decided, what changes when a word does, and whole files.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {Panels, SaveDrawn} from "../draw.js";
import {Choice, Field, html, percent, Trouble, useEffect, useRequest, useSettled, useSignal} from "../ui.js";
import {Batch, PATHS} from "./batch.js";
import {noOptions, Options, optionValues} from "./options.js";

/** @typedef {import("../types").Model} Model */

const PAUSE = 15;  // milliseconds without a key after which the text is read

/** @param {{model: Model}} props */
export function Read({model}) {
  const text = address.value.text ?? "";
  const {answer, error, run} = useRequest();
  useSettled(() => {
    if (text.trim()) run(async (signal) => ({text, ...(await ask(PATHS[model.task], {model: model.id, input: text}, signal)).results[0]}));
    else answer.value = null;
  }, PAUSE, [text, model.id]);
  return html`<div class="sides">
    <div>
      <${Field} name="Text"><textarea value=${text} placeholder="Type, and it is read" onInput=${(/** @type {any} */ e) => go({text: e.target.value})}></textarea><//>
      <${Trouble} error=${error.value} />
      ${text.trim() && html`<${Words} model=${model} text=${text} before=${answer.value} />`}
    </div>
    <div aria-live="polite">${answer.value && html`<${Answer} answer=${answer.value} />`}</div>
  </div>
  ${text.trim() && model.views.length > 0 && html`<${Why} model=${model} text=${text} answer=${answer.value} />`}
  <${Batch} model=${model} />`;
}

/** What a model says of a text. @param {{answer: any}} props */
export const Answer = ({answer}) => answer.probabilities ? html`<${Probabilities} answer=${answer} />` : html`<${Tagged} answer=${answer} />`;

/** @param {{answer: any}} props */
function Probabilities({answer}) {
  const shown = Object.entries(answer.probabilities).sort(([, a], [, b]) => b - a).slice(0, 12);
  return html`<p class="label"><strong>${answer.label ?? answer.labels.join(", ")}</strong></p>
    <table class="cells"><tbody>${shown.map(([label, probability]) => html`<tr><th scope="row">${label}</th>
      <td><meter min="0" max="1" value=${probability} aria-hidden="true"></meter></td><td class="number">${percent(probability)}</td></tr>`)}</tbody></table>`;
}

/** Spans drawn on the text, or a tag below each word. @param {{answer: any}} props */
function Tagged({answer}) {
  const {tokens, tags, spans} = answer;
  if (!spans?.length && tags.every((/** @type {string} */ tag) => tag === "O")) return html`<p class="text words" dir="auto">${tokens.join(" ")}</p><p class="quietly">nothing was found</p>`;
  if (!spans?.length) return html`<p dir="auto">${tokens.map((/** @type {string} */ token, /** @type {number} */ place) => html`<span class="tagged"><span>${token}</span><small>${tags[place]}</small></span>`)}</p>`;
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

/** Words that can be left out or replaced, and what the model says then. @param {{model: Model, text: string, before: any}} props */
function Words({model, text, before}) {
  const words = text.trim().split(/\s+/).slice(0, 200);
  const changed = useSignal(/** @type {Record<number, string>} */ ({}));
  const {answer, error, run} = useRequest();
  useEffect(() => { changed.value = {}; answer.value = null; }, [text]);
  const now = words.map((word, place) => changed.value[place] ?? word).filter(Boolean).join(" ");
  useSettled(() => {
    if (Object.keys(changed.value).length && now) run(async (signal) => (await ask(PATHS[model.task], {model: model.id, input: now}, signal)).results[0]);
  }, PAUSE, [now]);
  /** @param {number} place @param {string | undefined} word */
  const put = (place, word) => {
    const next = {...changed.value};
    if (word === undefined) delete next[place];
    else next[place] = word;
    changed.value = next;
  };
  return html`<details class="words"><summary>What if a word were another?</summary>
    <div class="words-row">${words.map((word, place) => {
      const out = changed.value[place] === "";
      return html`<span class=${`chip ${out ? "out" : ""}`}><input aria-label=${`word ${place + 1}`} size=${Math.max(2, (changed.value[place] || word).length)} value=${changed.value[place] || word} disabled=${out}
          onInput=${(/** @type {any} */ e) => put(place, e.target.value === word ? undefined : e.target.value)} />
        <button type="button" class="quiet" aria-pressed=${out} aria-label=${`leave out ${word}`} onClick=${() => put(place, out ? undefined : "")}>×</button></span>`;
    })}</div>
    <${Trouble} error=${error.value} />
    ${answer.value && before && Object.keys(changed.value).length > 0 && html`<p>${difference(before, answer.value)}</p><${Answer} answer=${answer.value} />`}</details>`;
}

/** What a change did, in a sentence. @param {any} before @param {any} after */
function difference(before, after) {
  if (!before.probabilities) return before.tags.join() === after.tags.join() ? "The tags stay." : "Then the tags are these:";
  const label = before.label ?? before.labels[0];
  const [was, is] = [before.probabilities[label], after.probabilities[label]];
  return `${label}: ${percent(was)} before, ${percent(is)} with the change (${is >= was ? "+" : "−"}${percent(Math.abs(is - was))}).`;
}

/** Which words decided, by any view and method of `elman explain`. @param {{model: Model, text: string, answer: any}} props */
function Why({model, text}) {
  const {answer, error, busy, run} = useRequest();
  const view = model.views.find(({name}) => name === address.value.look) ?? model.views[0];
  const options = optionValues(view);
  const body = {model: model.id, input: text, view: view.name, options};
  const open = address.value.why === "1";
  useSettled(() => { if (open) run((signal) => ask("/v1/explain", {...body, format: "panels"}, signal)); }, 400, [open, text, view.name, JSON.stringify(options)]);
  return html`<details class="why" open=${open} onToggle=${(/** @type {any} */ e) => go({why: e.target.open ? "1" : undefined})}><summary>What decided?</summary>
    <div class="row">
      <${Choice} name="view" value=${view.name} choices=${model.views.map(({name}) => name)} change=${(/** @type {string} */ value) => go({...noOptions(), look: value})} />
      <${Options} view=${view} labels=${model.labels} />
      ${busy.value && html`<span class="quietly" role="status">at work …</span>`}</div>
    <${Trouble} error=${error.value} />
    ${answer.value && html`<${Panels} drawn=${answer.value} /><${SaveDrawn} path="/v1/explain" body=${body} name=${`${model.id}-${view.name}`} />`}</details>`;
}
