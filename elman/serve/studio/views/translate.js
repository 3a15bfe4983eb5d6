// Translate: source and target with the alignment between them; other words can be asked for, and the search looked at.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {Field, html, percent, Slider, Trouble, useRequest, useSettled, useSignal} from "../ui.js";
import {Alignment} from "./alignment.js";
import {BeamTree, searched} from "./beam.js";

/** @typedef {import("../types").Model} Model */
/** @typedef {import("../types").Studio} Studio */

const LARGEST_BEAM = 20, MOST_TRANSLATIONS = 10;

/** @param {{model: Model, studio: Studio}} props */
export function Translate({model, studio}) {
  const {text = "", prefix = "", banned = "", required = ""} = address.value;
  const beam = Number(address.value.beam ?? 5), n_best = Number(address.value.n_best ?? 3);
  const {max_beam, max_n} = studio.limits;
  const {answer, error, busy, run} = useRequest();
  const searching = {beam, ...(prefix ? {prefix} : {}), ...(banned ? {forbid: listed(banned)} : {}), ...(required ? {require: listed(required)} : {})};
  const asked = {model: model.id, input: text, n_best: Math.min(n_best, beam), alignments: model.attends, ...searching};
  useSettled(() => {
    if (text.trim()) run(async (signal) => (await ask("/v1/translate", asked, signal)).results[0]);
    else answer.value = null;
  }, 100, [JSON.stringify(asked)]);
  const found = text.trim() ? answer.value : null, place = Number(address.value.word ?? -1);
  return html`<div class="split"><div>
      <${Field} name="Source"><textarea value=${text} placeholder="Type, and it is translated" onInput=${(/** @type {any} */ e) => go({text: e.target.value, prefix: undefined, word: undefined})}></textarea><//>
      <${Trouble} error=${error.value} />
      <div class=${busy.value ? "busy" : ""}>${found && html`
        <p class="text translation" dir="auto" aria-live="polite">${found.translation}</p>
        <${Alignment} found=${found} chosen=${place} choose=${(/** @type {number} */ to) => go({word: to < 0 ? undefined : to})} />
        ${found.target_tokens[place] !== undefined && html`<${Others} key=${`${found.translation} ${place}`} model=${model} found=${found} place=${place} />`}
        ${found.n_best?.length > 1 && html`<h2>Others</h2><ol>${found.n_best.slice(1).map((/** @type {any} */ one) => html`<li dir="auto">${one.translation} <span class="quietly">${one.score.toFixed(3)}</span>
          <button type="button" class="quiet" onClick=${() => go({prefix: one.translation, word: undefined}, {step: true})}>take it</button></li>`)}</ol>`}`}</div>
      ${text.trim() && html`<details open=${address.value.tree === "1"} onToggle=${(/** @type {any} */ e) => go({tree: e.target.open ? "1" : undefined})}><summary>The search</summary>
        ${address.value.tree === "1" && html`<${BeamTree} model=${model} text=${text} options=${searching} />`}</details>`}
    </div>
    <div class="controls" role="group" aria-label="search">
      <${Slider} name="beam" value=${beam} low=${1} high=${Math.min(LARGEST_BEAM, max_beam)} step=${1} change=${(/** @type {number} */ value) => go({beam: value})} />
      <${Slider} name="translations" value=${n_best} low=${1} high=${Math.min(MOST_TRANSLATIONS, max_n)} step=${1} change=${(/** @type {number} */ value) => go({n_best: value})} />
      <${Field} name="begins with"><input value=${prefix} onInput=${(/** @type {any} */ e) => go({prefix: e.target.value, word: undefined})} /><//>
      <${Field} name="must have" hint="words, with commas between"><input value=${required} onInput=${(/** @type {any} */ e) => go({required: e.target.value})} /><//>
      <${Field} name="must not have" hint="words, with commas between"><input value=${banned} onInput=${(/** @type {any} */ e) => go({banned: e.target.value})} /><//>
      ${(prefix || required || banned) && html`<button type="button" class="quiet" onClick=${() => go({prefix: undefined, required: undefined, banned: undefined, word: undefined}, {step: true})}>Ask for nothing</button>`}
    </div></div>`;
}

/** @param {string} words */
const listed = (words) => words.split(",").map((word) => word.trim()).filter(Boolean);

/**
 * What could stand at a place of the translation: what is before it is kept, the rest is searched anew.
 * @param {{model: Model, found: any, place: number}} props
 */
function Others({model, found, place}) {
  const {answer, error, run} = useRequest();
  useSettled(() => run((signal) => others(model, found, place, signal)), 0, []);
  const typed = useSignal(""), word = found.target_tokens[place];
  const close = () => go({word: undefined});
  /** @param {string} prefix */
  const take = (prefix) => go({prefix, word: undefined}, {step: true});
  const never = () => go({banned: [...listed(address.value.banned ?? ""), word.trim()].join(", "), prefix: undefined, word: undefined}, {step: true});
  return html`<div class="alternatives" role="group" aria-label="in its place" onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Escape") close(); }}>
    <p>In the place of “${word}”:</p><${Trouble} error=${error.value} />
    ${answer.value && html`<ul>${answer.value.found.map((/** @type {any} */ one) => html`<li><button type="button" class="quiet" onClick=${() => take(one.text)}>${one.token}</button>
      <span>${percent(one.probability)}</span><meter min="0" max="1" value=${one.probability} aria-hidden="true"></meter></li>`)}</ul>
    <form class="row" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); take(answer.value.spaced ? `${answer.value.before} ${typed.value}`.trim() : answer.value.before + typed.value); }}>
      <${Field} name="or"><input value=${typed} onInput=${(/** @type {any} */ e) => { typed.value = e.target.value; }} /><//>
      <button class="quiet" disabled=${!typed.value.trim()}>Take it</button>
      ${word.trim() && html`<button type="button" class="quiet" onClick=${never}>Never “${word.trim()}”</button>`}
      <button type="button" class="quiet" onClick=${close}>Close</button></form>`}</div>`;
}

const SHOWN = 10;

/** @param {Model} model @param {any} translation @param {number} place @param {AbortSignal} signal */
async function others(model, {text, translation, target_tokens}, place, signal) {
  // What stands before the place is known by making the model write what it has written: tokens need not be words.
  const written = await searched(model, text, {beam: 1, prefix: translation}, signal);
  const before = written.nodes.find(({id}) => id === written.best[place])?.text ?? "";
  const {nodes} = await searched(model, text, {beam: SHOWN, ...(before ? {prefix: before} : {})}, signal);
  const chances = new Map(nodes.map(({id, log_prob}) => [id, log_prob]));
  const found = nodes.filter(({step, token, parent}) => step === place + 1 && token !== "<eos>" && parent !== null)
    .map(({token, text: whole, parent, log_prob}) => ({token, text: whole, probability: Math.exp(log_prob - (chances.get(/** @type {number} */ (parent)) ?? 0))}));
  const spaced = target_tokens.length > 1 && target_tokens.join("") !== translation;
  return {before, spaced, found: found.sort((a, b) => b.probability - a.probability).slice(0, SHOWN)};
}
