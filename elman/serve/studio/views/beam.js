// The beam's tree: every hypothesis, pruned ones too; a node is where the search can go on from.
import {go} from "../address.js";
import {ask} from "../api.js";
import {SavePicture} from "../draw.js";
import {html, Trouble, useRef, useRequest, useSettled, useSignal} from "../ui.js";
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
  const picture = useRef(/** @type {SVGSVGElement | null} */ (null)), reached = useSignal(0);
  useSettled(() => run((signal) => searched(model, text, options, signal)), 100, [text, JSON.stringify(options)]);
  const found = /** @type {Searched | null} */ (answer.value);
  if (!found) return html`<${Trouble} error=${error.value} />${busy.value && html`<p class="quietly" role="status">searching …</p>`}`;
  const best = new Set(found.best);
  const root = tree().nodeSize([DOWN, ACROSS])(/** @type {any} */ (stratify().id((/** @type {any} */ d) => String(d.id)).parentId((/** @type {any} */ d) => d.parent === null ? null : String(d.parent)))(found.nodes));
  const nodes = /** @type {import("../vendor/d3-hierarchy.js").Point<Hypothesis>[]} */ (/** @type {any} */ (root.descendants()));
  const top = Math.min(...nodes.map(({x}) => x)) - 20, height = Math.max(...nodes.map(({x}) => x)) - top + 20;
  const width = Math.max(...nodes.map(({y}) => y)) + ACROSS + 20;
  /** @param {typeof nodes[number]} node */
  const take = (node) => go({prefix: node.data.text, word: undefined}, {step: true});
  /** Left is what a hypothesis continues, right its best continuation, up and down its neighbours. @param {KeyboardEvent} event @param {typeof nodes[number]} node */
  const keys = (event, node) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      take(node);
    }
    const level = nodes.filter(({depth}) => depth === node.depth).sort((a, b) => a.x - b.x), here = level.indexOf(node);
    const below = nodes.filter(({parent}) => parent === node).sort((a, b) => a.data.rank - b.data.rank);
    const to = {ArrowLeft: node.parent, ArrowRight: below[0], ArrowUp: level[here - 1], ArrowDown: level[here + 1]}[event.key];
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    if (!to) return;
    reached.value = to.data.id;
    /** @type {SVGElement | null | undefined} */ (picture.current?.querySelector(`[data-id="${to.data.id}"]`))?.focus();
  };
  const tab = nodes.some(({data}) => data.id === reached.value) ? reached.value : nodes[0].data.id;
  return html`<${Trouble} error=${error.value} /><div class="scroll whole"><svg ref=${picture} class="beam" width=${width} height=${height} viewBox=${`-16 ${top} ${width} ${height}`} role="group" aria-label="hypotheses of the beam search">
      ${root.links().map(({source, target}) => html`<path class=${/** @type {any} */ (target.data).fate === "pruned" ? "pruned" : ""} d=${`M${source.y} ${source.x}C${(source.y + target.y) / 2} ${source.x} ${(source.y + target.y) / 2} ${target.x} ${target.y} ${target.x}`} />`)}
      ${nodes.map((node) => html`<g transform=${`translate(${node.y} ${node.x})`} class=${`${best.has(node.data.id) ? "best" : ""} ${node.data.fate === "pruned" ? "pruned" : ""}`} data-id=${node.data.id} tabindex=${node.data.id === tab ? 0 : -1} role="button"
        aria-label=${`${node.data.text || "the beginning"}: ${node.data.fate}, score ${node.data.score.toFixed(3)}; go on from here`} onClick=${() => take(node)}
        onKeyDown=${(/** @type {KeyboardEvent} */ e) => keys(e, node)}>
        <title>${`${node.data.fate}; score ${node.data.score.toFixed(3)}, log-probability ${node.data.log_prob.toFixed(3)}, rank ${node.data.rank}`}</title>
        <circle r="5" /><text x="9" y="5">${node.data.token}</text></g>`)}</svg></div>
    <p class="quietly">Thick is what won, pale what was pruned. A node goes on from there.</p>
    <${SavePicture} find=${() => picture.current} data=${found} name="search" />`;
}
