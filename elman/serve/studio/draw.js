// Pictures: those that the service draws (the panels of `elman explain` and `elman lab`), and how any picture is saved.
import {ask, fetchFile} from "./api.js";
import {download, html, useEffect, useRef} from "./ui.js";

/** @typedef {{html: string, tips: {strings: string[], panels: number[][][]}, data?: unknown}} Drawn */

/**
 * Panels as the service drew them, with their tips; parts can be reached by keys.
 * @param {{drawn: Drawn, click?: (kind: string, place: number, panel: number) => void}} props
 */
export function Panels({drawn, click}) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const root = /** @type {HTMLElement} */ (place.current), tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
    const stop = new AbortController();
    root.innerHTML = drawn.html;  // markup of the service's own: nothing that a user wrote stands in it unescaped
    watchPanels(root, drawn.tips, tip, stop.signal);
    return () => {
      stop.abort();
      tip.hidden = true;
    };
  }, [drawn]);
  /** @param {Event} event */
  function clicked(event) {
    const part = /** @type {HTMLElement} */ (event.target), probe = /** @type {HTMLElement | null} */ (part.closest("[data-kind]"));
    if (!click || !probe || probe.dataset.kind !== "tokens" || part.parentElement !== probe) return;
    const probes = [.../** @type {HTMLElement} */ (place.current).querySelectorAll("[data-kind]")];
    click("tokens", [...probe.children].indexOf(part), probes.indexOf(probe));
  }
  return html`<div class="drawn" ref=${place} onClick=${clicked}></div>`;
}

/**
 * Buttons that save what the service draws for a request as a picture, a page or numbers.
 * @param {{path: string, body: Record<string, unknown>, name: string}} props
 */
export function SaveDrawn({path, body, name}) {
  /** @param {string} format */
  const save = async (format) => {
    if (format === "json") download(JSON.stringify(await ask(path, {...body, format}), null, 1), `${name}.json`, "application/json");
    else download(await fetchFile(path, {...body, format}), `${name}.${format}`);
  };
  return html`<p class="save">save as ${["svg", "png", "html", "json"].map((format) => html`
    <button type="button" class="quiet" onClick=${() => save(format)}>${format.toUpperCase()}</button> `)}</p>`;
}

/**
 * Buttons that save a picture that is at hand, and the numbers behind it.
 * @param {{svg: () => string, data: unknown, name: string}} props
 */
export const SaveTexts = ({svg, data, name}) => html`<p class="save">save as
  <button type="button" class="quiet" onClick=${() => download(svg(), `${name}.svg`, "image/svg+xml")}>SVG</button>
  <button type="button" class="quiet" onClick=${async () => download(await toPng(svg()), `${name}.png`)}>PNG</button>
  <button type="button" class="quiet" onClick=${() => download(JSON.stringify(data, null, 1), `${name}.json`, "application/json")}>JSON</button></p>`;

/**
 * An SVG element of the page as a picture that stands alone.
 * @param {{find: () => SVGSVGElement | null, data: unknown, name: string}} props
 */
export const SavePicture = ({find, data, name}) => html`<${SaveTexts} svg=${() => withStyles(/** @type {SVGSVGElement} */ (find()))} data=${data} name=${name} />`;

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];

/**
 * A picture that stands alone: the colours of the style sheet go into it.
 * @param {SVGSVGElement} picture
 */
function withStyles(picture) {
  const copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  const parts = [picture, ...picture.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
  parts.forEach((part, place) => {
    const style = getComputedStyle(part);
    for (const name of KEPT) copies[place].setAttribute(name, style.getPropertyValue(name));
  });
  const {width, height} = picture.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  return new XMLSerializer().serializeToString(copy);
}

/** @param {string} svg @returns {Promise<Blob>} */
async function toPng(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], {type: "image/svg+xml"}));
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * image.width;
  canvas.height = 2 * image.height;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(/** @type {Blob} */ (blob)), "image/png"));
}
