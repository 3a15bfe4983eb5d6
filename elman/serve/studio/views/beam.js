// The beam's tree: every hypothesis, pruned ones too; a node is where the search can go on from.
import {go} from "../address.js";
import {ask} from "../api.js";
import {SavePicture} from "../draw.js";
import {html, Trouble, useRef, useRequest, useSettled} from "../ui.js";
import {stratify, tree} from "../vendor/d3-hierarchy.js";

/** @typedef {{id: number, parent: number | null, token: string, score: number, log_prob: number, rank: number, fate: string, step: number, text: string}} Hypothesis */
/** @typedef {{translation: string, nodes: Hypothesis[], best: number[]}} Searched */

const ACROSS = 96, DOWN = 24;

/**
 * Every hypothesis of a search.
 * @param {import("../types").Model} model @param {string} text @param {Record<string, unknown>} options @param {AbortSignal} signal
 * @returns {Promise<Searched>}
 */
export const searched = async (model, text, options, signal) => (await ask("/v1/explain", {model: model.id, input: text, view: "tree", options}, signal)).texts[0];

/** @param {{model: import("../types").Model, text: string, options: Record<string, unknown>}} props */
export function BeamTree({model, text, options}) {
  const {answer, error, busy, run} = useRequest();
  const picture = useRef(/** @type {SVGSVGElement | null} */ (null));
  useSettled(() => run((signal) => searched(model, text, options, signal)), 100, [text, JSON.stringify(options)]);
  const found = /** @type {Searched | null} */ (answer.value);
  if (!found) return html`<${Trouble} error=${error.value} />${busy.value && html`<p class="quietly" role="status">searching …</p>`}`;
  const best = new Set(found.best);
  const root = tree().nodeSize([DOWN, ACROSS])(/** @type {any} */ (stratify().id((/** @type {any} */ d) => String(d.id)).parentId((/** @type {any} */ d) => d.parent === null ? null : String(d.parent)))(found.nodes));
  const nodes = /** @type {import("../vendor/d3-hierarchy.js").Point<Hypothesis>[]} */ (/** @type {any} */ (root.descendants()));
  const top = Math.min(...nodes.map(({x}) => x)) - 20, height = Math.max(...nodes.map(({x}) => x)) - top + 20;
  const width = Math.max(...nodes.map(({y}) => y)) + ACROSS + 20;
  /** @param {typeof nodes[number]} node */
  const take = (node) => go({prefix: node.data.text}, {step: true});
  return html`<${Trouble} error=${error.value} /><div class="scroll"><svg ref=${picture} class="beam" width=${width} height=${height} viewBox=${`-16 ${top} ${width} ${height}`} role="group" aria-label="hypotheses of the beam search">
      ${root.links().map(({source, target}) => html`<path class=${/** @type {any} */ (target.data).fate === "pruned" ? "pruned" : ""} d=${`M${source.y} ${source.x}C${(source.y + target.y) / 2} ${source.x} ${(source.y + target.y) / 2} ${target.x} ${target.y} ${target.x}`} />`)}
      ${nodes.map((node) => html`<g transform=${`translate(${node.y} ${node.x})`} class=${`${best.has(node.data.id) ? "best" : ""} ${node.data.fate === "pruned" ? "pruned" : ""}`} tabindex="0" role="button"
        aria-label=${`${node.data.text || "the beginning"}: ${node.data.fate}, score ${node.data.score.toFixed(3)}; go on from here`} onClick=${() => take(node)}
        onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); take(node); } }}>
        <title>${`${node.data.fate}; score ${node.data.score.toFixed(3)}, log-probability ${node.data.log_prob.toFixed(3)}, rank ${node.data.rank}`}</title>
        <circle r="5" /><text x="9" y="5">${node.data.token}</text></g>`)}</svg></div>
    <p class="quietly">Thick is what won, pale what was pruned. A node goes on from there.</p>
    <${SavePicture} find=${() => picture.current} data=${found} name="search" />`;
}
