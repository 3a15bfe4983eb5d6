// Units of a language model that are found by what they do: on in a part of the text, following a feature; and where its state comes again.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {Choice, Field, html, Trouble, Typed, useRequest, useSettled} from "../ui.js";
import {noOptions} from "./options.js";

/** @typedef {import("../types").Model} Model */
/** @typedef {{part: string, unit: number, told: string}} Unit Layer and letter, number, and what was measured. */

const WAYS = /** @type {[string, string][]} */ ([["part", "on in a part of the text, and off around it"], ["feature", "following a feature"], ["near", "places where the state is near that of a part"]]);
const FEATURES = ["line-position", "word-position", 'open:""', "open:()", "regex:[A-Z]", "regex:[0-9]+", "regex:[aeiou]"];
const THRESHOLD = 0.3;

/** @param {{model: Model, text: string}} props */
export function Units({model, text}) {
  const {find = "", part = "", feature = ""} = address.value, open = find !== "";
  const threshold = Number(address.value.threshold ?? THRESHOLD);
  const {answer, error, busy, run} = useRequest();
  const told = model.labels?.length ? {label: address.value["o.label"] ?? model.labels[0]} : {};
  const asked = find === "feature" ? {view: "features", options: {feature, ...told}} : {view: "matches", options: {phrase: part, threshold, ...told}};
  const ready = open && (find === "feature" ? feature : part).trim();
  useSettled(() => {
    if (ready) run(async (signal) => ({view: asked.view, ...(await ask("/v1/explain", {model: model.id, input: text, ...asked}, signal)).texts[0]}));
    else answer.value = null;
  }, 400, [ready, text, JSON.stringify(asked)]);
  const found = ready && answer.value?.view === asked.view ? answer.value : null;
  return html`<details class="units" open=${open} onToggle=${(/** @type {any} */ e) => { if (e.target.open !== open) go({find: e.target.open ? "part" : undefined}); }}><summary>Find units</summary>
    <div class="row">
      <${Choice} name="that are" value=${find || "part"} choices=${WAYS} change=${(/** @type {string} */ value) => go({find: value}, {step: true})} />
      ${find === "feature"
        ? html`<${Field} name="feature"><input value=${feature} list="features" placeholder="line-position" onInput=${(/** @type {any} */ e) => go({feature: e.target.value})} /><//>
          <datalist id="features">${FEATURES.map((one) => html`<option value=${one}></option>`)}</datalist>`
        : html`<${Field} name="part"><input value=${part} placeholder="mark it in the text" onInput=${(/** @type {any} */ e) => go({part: e.target.value})} /><//>`}
      ${find === "part" && html`<${Field} name="on from"><${Typed} type="number" min="0.05" step="0.05" value=${threshold} change=${(/** @type {string} */ value) => go({threshold: value})} /><//>`}
      ${busy.value && html`<span class="quietly" role="status">at work …</span>`}</div>
    <${Trouble} error=${error.value} />
    ${found && (find === "near" ? html`<${Places} found=${found} />` : html`<${Found} units=${unitsOf(found)} note=${noteOf(found)} />`)}</details>`;
}

/** @param {any} found @returns {Unit[]} */
const unitsOf = (found) => found.following
  ? found.following.units.map((/** @type {any} */ one) => ({part: one.part, unit: one.unit, told: `held-out correlation ${one.held_out.toFixed(2)}`}))
  : found.units.map((/** @type {number} */ unit, /** @type {number} */ at) => ({part: found.part, unit, told: found.signs[at] > 0 ? "on above" : "on below zero"}));

/** @param {any} found */
function noteOf(found) {
  if (!found.following) return found.units.length ? "" : "No unit is on in all of it and off around it: lower the value, or take another part.";
  const {probe} = found.following;
  return `A linear probe over all states: ${probe.measure} ${probe.score.toFixed(3)}, by chance ${probe.chance.toFixed(3)}: ${probe.found ? "found" : "not found"}.`;
}

/** Units that can be looked at, one by one or together. @param {{units: Unit[], note: string}} props */
function Found({units, note}) {
  /** @param {Unit[]} some */
  const look = (some) => {
    const [layer, part] = some[0].part.split(".");
    go({...noOptions(), look: "neurons", "o.layer": layer, "o.part": part, "o.units": some.map(({unit}) => unit).join(",")}, {step: true});
  };
  return html`<p class="quietly">${note}</p><div class="words-row">${units.map((one) => html`<button type="button" class="quiet" title=${one.told} onClick=${() => look([one])}>${one.part} ${one.unit} <small>${one.told}</small></button>`)}
    ${units.length > 1 && units.every(({part}) => part === units[0].part) && html`<button type="button" onClick=${() => look(units)}>All of them</button>`}</div>`;
}

/** @param {{found: any}} props */
const Places = ({found}) => html`<div class="scroll"><table class="cells"><thead><tr><th scope="col" class="number">cosine</th><th scope="col">where</th></tr></thead>
  <tbody>${found.nearest.map((/** @type {any} */ one) => html`<tr><td class="number">${one.score.toFixed(3)}</td><td dir="auto">${one.before}<strong>${one.text}</strong>${one.behind}</td></tr>`)}</tbody></table></div>`;
