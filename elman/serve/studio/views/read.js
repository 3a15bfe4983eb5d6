// Read: a classifier, tagger or tree network answers as one types; what decided, what changes when a word does, and whole files.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {Panels, SaveDrawn} from "../draw.js";
import {Choice, Field, html, percent, Trouble, useRequest, useSettled} from "../ui.js";
import {Answer, answers, changedTags} from "./answers.js";
import {Batch} from "./batch.js";
import {noOptions, Options, optionValues} from "./options.js";

/** @typedef {import("../types").Model} Model */
/** @typedef {import("../types").Studio} Studio */

/** @param {{model: Model, studio: Studio}} props */
export function Read({model, studio}) {
  const text = address.value.text ?? "";
  const {answer, error, run} = useRequest();
  useSettled(() => {
    if (text.trim()) run(async (signal) => (await answers(model, [text], signal))[0]);
    else answer.value = null;
  }, 0, [text]);
  return html`<div class="sides">
    <div>
      <${Field} name="Text"><textarea value=${text} placeholder="Type, and it is read" onInput=${(/** @type {any} */ e) => go({text: e.target.value, edits: undefined})}></textarea><//>
      <${Trouble} error=${error.value} />
      ${text.trim() && html`<${Words} model=${model} text=${text} before=${answer.value} />`}
    </div>
    <div aria-live="polite">${answer.value && text.trim() && html`<${Answer} answer=${answer.value} />`}</div>
  </div>
  ${text.trim() && model.views.length > 0 && html`<${Why} model=${model} text=${text} />`}
  <${Batch} model=${model} studio=${studio} />`;
}

const MOST_WORDS = 200;

/** The words that are changed, by place; null is left out. @returns {Record<number, string | null>} */
function edits() {
  try {
    const found = JSON.parse(address.value.edits ?? "{}");
    if (typeof found === "object" && found) return found;
  } catch {}  // someone has written an address by hand
  return {};
}

/** Words that can be left out or replaced, and what the model says then. @param {{model: Model, text: string, before: any}} props */
function Words({model, text, before}) {
  const words = text.trim().split(/\s+/).slice(0, MOST_WORDS), changed = edits(), any = Object.keys(changed).length > 0;
  const {answer, error, run} = useRequest();
  const now = words.map((word, place) => place in changed ? changed[place] : word).filter(Boolean).join(" ");
  useSettled(() => {
    if (any && now) run(async (signal) => (await answers(model, [now], signal))[0]);
    else answer.value = null;
  }, 0, [now, any]);
  /** @param {number} place @param {string | null | undefined} word */
  const put = (place, word) => {
    const next = {...changed};
    if (word === undefined) delete next[place];
    else next[place] = word;
    go({edits: Object.keys(next).length ? JSON.stringify(next) : undefined});
  };
  const after = any ? answer.value : null;
  return html`<details class="words" open=${address.value.words === "1"} onToggle=${(/** @type {any} */ e) => go({words: e.target.open ? "1" : undefined})}><summary>What if a word were another?</summary>
    <div class="words-row">${words.map((word, place) => {
      const out = changed[place] === null, shown = changed[place] ?? word;
      return html`<span class=${`chip ${out ? "out" : ""}`}><input aria-label=${`word ${place + 1}`} size=${Math.max(2, shown.length)} value=${shown} disabled=${out}
          onInput=${(/** @type {any} */ e) => put(place, e.target.value === word ? undefined : e.target.value)} />
        <button type="button" class="quiet" aria-pressed=${out} aria-label=${`leave out ${word}`} onClick=${() => put(place, out ? undefined : null)}>×</button></span>`;
    })}</div>
    <${Trouble} error=${error.value} />
    ${any && html`<p><button type="button" class="quiet" onClick=${() => go({edits: undefined})}>As it was</button></p>`}
    ${after && before && html`<p>${difference(before, after)}</p><${Answer} answer=${after} changed=${before.tags && changedTags(before, after)} />`}</details>`;
}

/** What a change did, in a sentence. @param {any} before @param {any} after */
function difference(before, after) {
  if (!before.probabilities) {
    const count = changedTags(before, after).size;
    return count ? `Then ${count} of the other tags ${count === 1 ? "is another" : "are others"}:` : "The tags of the other words stay.";
  }
  const label = before.label ?? before.labels[0] ?? Object.keys(before.probabilities)[0];
  const [was, is] = [before.probabilities[label], after.probabilities[label]];
  return `${label}: ${percent(was)} before, ${percent(is)} with the change (${is >= was ? "+" : "−"}${percent(Math.abs(is - was))}).`;
}

/** Which words decided, by any view and method of `elman explain`. @param {{model: Model, text: string}} props */
function Why({model, text}) {
  const {answer, error, busy, run} = useRequest();
  const view = model.views.find(({name}) => name === address.value.look) ?? model.views[0];
  const options = optionValues(view);
  const body = {model: model.id, input: text, view: view.name, options};
  const open = address.value.why === "1";
  useSettled(() => { if (open) run((signal) => ask("/v1/explain", {...body, format: "panels"}, signal)); }, 400, [open, text, view.name, JSON.stringify(options)]);
  return html`<details class="why" open=${open} onToggle=${(/** @type {any} */ e) => go({why: e.target.open ? "1" : undefined})}><summary>What decided?</summary>
    <div class="row">
      <${Choice} name="view" value=${view.name} choices=${model.views.map(({name}) => name)} change=${(/** @type {string} */ value) => go({...noOptions(), look: value}, {step: true})} />
      <${Options} view=${view} model=${model} />
      ${busy.value && html`<span class="quietly" role="status">at work …</span>`}</div>
    <${Trouble} error=${error.value} />
    ${answer.value && html`<div class=${busy.value ? "busy" : ""}><${Panels} drawn=${answer.value} /></div><${SaveDrawn} path="/v1/explain" body=${body} name=${`${model.id}-${view.name}`} />`}</details>`;
}
