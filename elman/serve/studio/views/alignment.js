// An alignment: the words of source and target in two rows, and between them how much each target word attends to each of the source.
import {SavePicture} from "../draw.js";
import {html, moveBy, useMemo, useRef, useSignal} from "../ui.js";

const GAP = 14, TOP = 22, BOTTOM = 128, HEIGHT = 150, LEAST = 0.08, FONT = "15px system-ui, sans-serif";

/** Where each token stands in a row. @param {string[]} tokens */
function placed(tokens) {
  const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  pen.font = FONT;
  let at = 0;
  return tokens.map((token) => {
    const width = Math.max(pen.measureText(token).width, 8), centre = at + width / 2;
    at += width + GAP;
    return {token, centre, end: at};
  });
}

/**
 * Target words are reached by arrow keys, and opened by a click or Enter.
 * @param {{found: any, chosen: number, choose: (place: number) => void}} props
 */
export function Alignment({found, chosen, choose}) {
  const picture = useRef(/** @type {SVGSVGElement | null} */ (null)), reached = useSignal(0), pointed = useSignal(-1);
  const [sources, targets] = useMemo(() => [placed(found.source_tokens), placed(found.target_tokens)], [found]);
  const width = Math.max(sources.at(-1)?.end ?? 0, targets.at(-1)?.end ?? 0, 200);
  const weights = /** @type {number[][]} */ (found.weights ?? []), lit = pointed.value >= 0 ? pointed.value : chosen;
  const links = weights.flatMap((row, target) => row.map((weight, source) => ({target, source, weight}))).filter(({weight, source, target}) => weight >= LEAST && sources[source] && targets[target]);
  /** @param {number} place */
  const toggle = (place) => {
    reached.value = place;
    choose(chosen === place ? -1 : place);
  };
  /** @param {KeyboardEvent} event @param {number} place */
  const keys = (event, place) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      toggle(place);
    }
    if (event.key === "Escape") choose(-1);
    const to = moveBy(event, place, targets.length);
    if (to === undefined) return;
    reached.value = to;
    /** @type {SVGElement | undefined} */ (picture.current?.querySelectorAll("[role=button]")[to])?.focus();
  };
  const tab = Math.min(reached.value, targets.length - 1);
  return html`<div class="scroll"><svg ref=${picture} class="align" viewBox=${`0 0 ${width} ${HEIGHT}`} width=${width} height=${HEIGHT} role="group" aria-label="alignment" onPointerLeave=${() => { pointed.value = -1; }}>
      ${links.map(({source, target, weight}) => html`<path d=${`M${sources[source].centre} ${TOP + 7}C${sources[source].centre} 78 ${targets[target].centre} 72 ${targets[target].centre} ${BOTTOM - 17}`}
        stroke-width=${lit === target ? 3 : 1.8} stroke-opacity=${(lit < 0 || lit === target ? weight : 0.15 * weight).toFixed(3)} />`)}
      ${sources.map(({token, centre}) => html`<text x=${centre} y=${TOP} text-anchor="middle">${token}</text>`)}
      ${targets.map(({token, centre}, place) => html`<text x=${centre} y=${BOTTOM} text-anchor="middle" class=${place === chosen ? "chosen" : ""} tabindex=${place === tab ? 0 : -1} role="button"
        aria-label=${`${token}: another in its place`} aria-expanded=${place === chosen} onClick=${() => toggle(place)} onPointerEnter=${() => { pointed.value = place; }}
        onFocus=${() => { pointed.value = -1; }} onKeyDown=${(/** @type {KeyboardEvent} */ e) => keys(e, place)}>${token}</text>`)}</svg></div>
    <${SavePicture} find=${() => picture.current} data=${found} name="alignment" />`;
}
