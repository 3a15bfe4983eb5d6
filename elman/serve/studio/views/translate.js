// Translate: source and target with the alignment between them; other words can be asked for, and the search looked at.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {SavePicture} from "../draw.js";
import {Field, html, percent, Slider, Trouble, useRef, useRequest, useSettled, useSignal} from "../ui.js";
import {BeamTree, searched} from "./beam.js";

/** @typedef {import("../types").Model} Model */

/** @param {{model: Model}} props */
export function Translate({model}) {
  const {text = "", prefix = "", banned = "", required = ""} = address.value;
  const beam = Number(address.value.beam ?? 5), n_best = Number(address.value.n_best ?? 3);
  const {answer, error, busy, run} = useRequest();
  const asked = {
    model: model.id, input: text, beam, n_best: Math.min(n_best, beam), alignments: true,
    ...(prefix ? {prefix} : {}), ...(banned ? {forbid: listed(banned)} : {}), ...(required ? {require: listed(required)} : {}),
  };
  const searching = {beam, ...(prefix ? {prefix} : {})};
  useSettled(() => {
    if (text.trim()) run(async (signal) => (await ask("/v1/translate", asked, signal)).results[0]);
    else answer.value = null;
  }, 150, [JSON.stringify(asked)]);
  const found = answer.value;
  return html`<div class="split"><div>
      <${Field} name="Source"><textarea value=${text} onInput=${(/** @type {any} */ e) => go({text: e.target.value, prefix: undefined})}></textarea><//>
      <${Trouble} error=${error.value} />
      <div class=${busy.value ? "busy" : ""} aria-live="polite">${found && html`
        <p class="text" dir="auto">${found.translation}</p>
        ${found.source_tokens && html`<${Alignment} found=${found} model=${model} text=${text} options=${searching} />`}
        ${found.n_best?.length > 1 && html`<h2>Others</h2><ol>${found.n_best.slice(1).map((/** @type {any} */ one) => html`<li dir="auto">${one.translation} <span class="quietly">${one.score.toFixed(3)}</span></li>`)}</ol>`}`}</div>
      ${text.trim() && html`<details open=${address.value.tree === "1"} onToggle=${(/** @type {any} */ e) => go({tree: e.target.open ? "1" : undefined})}><summary>The search</summary>
        ${address.value.tree === "1" && html`<${BeamTree} model=${model} text=${text} options=${searching} />`}</details>`}
    </div>
    <div class="controls" role="group" aria-label="search">
      <${Slider} name="beam" value=${beam} low=${1} high=${20} step=${1} change=${(/** @type {number} */ value) => go({beam: value})} />
      <${Slider} name="translations" value=${n_best} low=${1} high=${10} step=${1} change=${(/** @type {number} */ value) => go({n_best: value})} />
      <${Field} name="begins with"><input value=${prefix} onInput=${(/** @type {any} */ e) => go({prefix: e.target.value})} /><//>
      <${Field} name="must have" hint="words, with commas between"><input value=${required} onInput=${(/** @type {any} */ e) => go({required: e.target.value})} /><//>
      <${Field} name="must not have" hint="words, with commas between"><input value=${banned} onInput=${(/** @type {any} */ e) => go({banned: e.target.value})} /><//>
    </div></div>`;
}

/** @param {string} words */
const listed = (words) => words.split(",").map((word) => word.trim()).filter(Boolean);

const GAP = 14, SIZE = 8.6, TOP = 24, BOTTOM = 128;

/** Where each token stands in a row. @param {string[]} tokens */
function placed(tokens) {
  let at = 0;
  return tokens.map((token) => {
    const width = Math.max(token.length * SIZE, SIZE), centre = at + width / 2;
    at += width + GAP;
    return {token, centre, end: at};
  });
}

/** @param {{found: any, model: Model, text: string, options: Record<string, unknown>}} props */
function Alignment({found, model, text, options}) {
  const picture = useRef(/** @type {SVGSVGElement | null} */ (null));
  const chosen = useSignal(-1);
  const sources = placed(found.source_tokens), targets = placed(found.target_tokens);
  const width = Math.max(sources.at(-1)?.end ?? 0, targets.at(-1)?.end ?? 0, 200);
  const links = found.alignment.split(" ").filter(Boolean).map((/** @type {string} */ pair) => pair.split("-").map(Number));
  /** @param {number} place */
  const choose = (place) => { chosen.value = chosen.value === place ? -1 : place; };
  return html`<div class="scroll"><svg ref=${picture} class="align" viewBox=${`0 0 ${width} 150`} width=${width} role="group" aria-label="alignment">
      ${links.filter((/** @type {number[]} */ [s, t]) => sources[s] && targets[t]).map((/** @type {number[]} */ [s, t]) => html`<path d=${`M${sources[s].centre} ${TOP + 6}C${sources[s].centre} 80 ${targets[t].centre} 70 ${targets[t].centre} ${BOTTOM - 16}`} stroke-width=${chosen.value === t ? 3 : 1.6} />`)}
      ${sources.map(({token, centre}) => html`<text x=${centre} y=${TOP} text-anchor="middle">${token}</text>`)}
      ${targets.map(({token, centre}, place) => html`<text x=${centre} y=${BOTTOM} text-anchor="middle" tabindex="0" role="button" aria-label=${`${token}: another in its place`} onClick=${() => choose(place)}
        onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(place); } }}>${token}</text>`)}</svg></div>
    <${SavePicture} find=${() => picture.current} data=${found} name="alignment" />
    ${chosen.value >= 0 && html`<${Others} key=${chosen.value} model=${model} text=${text} tokens=${found.target_tokens} place=${chosen.value} options=${options} close=${() => { chosen.value = -1; }} />`}`;
}

/**
 * What could stand at a place of the translation: what is before it is kept, the rest is searched anew.
 * @param {{model: Model, text: string, tokens: string[], place: number, options: Record<string, unknown>, close: () => void}} props
 */
function Others({model, text, tokens, place, options, close}) {
  const {answer, error, run} = useRequest();
  useSettled(() => run((signal) => others(model, text, options, place, signal)), 0, []);
  const typed = useSignal("");
  /** @param {string} prefix */
  const take = (prefix) => {
    go({prefix}, {step: true});
    close();
  };
  return html`<div class="alternatives" role="group" aria-label="in its place"><p>In the place of “${tokens[place]}”:</p><${Trouble} error=${error.value} />
    ${answer.value && html`<ul>${answer.value.found.map((/** @type {any} */ one) => html`<li><button type="button" class="quiet" onClick=${() => take(one.text)}>${one.token}</button>
      <span>${percent(one.probability)}</span><meter min="0" max="1" value=${one.probability} aria-hidden="true"></meter></li>`)}</ul>
    <form class="row" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); take(`${answer.value.before} ${typed.value}`.trim()); }}>
      <${Field} name="or"><input value=${typed} onInput=${(/** @type {any} */ e) => { typed.value = e.target.value; }} /><//>
      <button class="quiet" disabled=${!typed.value.trim()}>Take it</button>
      <button type="button" class="quiet" onClick=${() => { go({banned: [...listed(address.value.banned ?? ""), tokens[place].trim()].join(", ")}); close(); }}>Never “${tokens[place]}”</button>
      <button type="button" class="quiet" onClick=${close}>Close</button></form>`}</div>`;
}

/** @param {Model} model @param {string} text @param {Record<string, unknown>} options @param {number} place @param {AbortSignal} signal */
async function others(model, text, options, place, signal) {
  const now = await searched(model, text, options, signal);
  const before = now.nodes.find(({id}) => id === now.best[place])?.text ?? "";
  const {nodes} = await searched(model, text, {beam: 10, ...(before ? {prefix: before} : {})}, signal);
  const chances = new Map(nodes.map(({id, log_prob}) => [id, log_prob]));
  const found = nodes.filter(({step, token, parent}) => step === place + 1 && token !== "<eos>" && parent !== null)
    .map(({token, text: written, parent, log_prob}) => ({token, text: written, probability: Math.exp(log_prob - (chances.get(/** @type {number} */ (parent)) ?? 0))}));
  return {before, found: found.sort((a, b) => b.probability - a.probability)};
}
