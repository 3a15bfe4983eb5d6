// Pictures: those that the service draws (the panels of `elman explain` and `elman lab`), and how any picture is saved.
import {ask, fetchFile} from "./api.js";
import {download, html, Trouble, useEffect, useRef, useRequest} from "./ui.js";

/** @typedef {{html: string, tips: {strings: string[], panels: number[][][]}, data?: unknown}} Drawn */

/** Panels as the service drew them, with their tips; parts can be reached by keys. @param {{drawn: Drawn}} props */
export function Panels({drawn}) {
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
  return html`<div class="drawn" ref=${place}></div>`;
}

/**
 * Buttons that save what the service draws for a request as a picture, a page or numbers.
 * @param {{path: string, body: Record<string, unknown>, name: string}} props
 */
export function SaveDrawn({path, body, name}) {
  const {error, busy, run} = useRequest();
  /** @param {string} format */
  const save = (format) => run(async () => {
    if (format === "json") download(JSON.stringify(await ask(path, {...body, format}), null, 1), `${name}.json`, "application/json");
    else download(await fetchFile(path, {...body, format}), `${name}.${format}`);
  });
  return html`<p class="save">save as ${["svg", "png", "html", "json"].map((format) => html`
    <button type="button" class="quiet" disabled=${busy.value} onClick=${() => save(format)}>${format.toUpperCase()}</button> `)}</p><${Trouble} error=${error.value} />`;
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

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];

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

/** A text as it may stand in markup. @param {string} text */
function escaped(text) {
  const holder = document.createElement("i");
  holder.textContent = text;
  return holder.innerHTML;
}

/**
 * A table as a picture: every cell with its ground and its text.
 * @param {HTMLTableElement} table
 */
export function tablePicture(table) {
  const origin = table.getBoundingClientRect();
  const cells = [...table.querySelectorAll("th, td")].map((cell) => {
    const {left, top, width, height} = cell.getBoundingClientRect(), style = getComputedStyle(cell), [x, y] = [left - origin.left, top - origin.top];
    return `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${style.backgroundColor}"/>
      <text x="${x + width / 2}" y="${y + height / 2}" fill="${style.color}" font-family="sans-serif" font-size="${style.fontSize}" text-anchor="middle" dominant-baseline="central">${escaped(/** @type {HTMLElement} */ (cell).innerText)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${origin.width}" height="${origin.height}">${cells.join("")}</svg>`;
}

/** Round numbers between two others, about five of them. @param {number} low @param {number} high */
function ticks(low, high) {
  const rough = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((times) => times * power >= rough) ?? 10);
  return Array.from({length: Math.floor(high / step) - Math.ceil(low / step) + 1}, (_, place) => Number(((Math.ceil(low / step) + place) * step).toPrecision(12)));
}

/** The curves that are seen, as an SVG: uPlot draws points on a canvas only. @param {import("./vendor/uplot.js").default} plot @param {string} figure */
export function curvesPicture(plot, figure) {
  const whole = plot.root.getBoundingClientRect(), {left, top, width, height} = plot.over.getBoundingClientRect();
  const [x0, y0] = [left - whole.left, top - whole.top], ink = getComputedStyle(document.body).color;
  /** @param {number} value */
  const x = (value) => (x0 + plot.valToPos(value, "x")).toFixed(1);
  /** @param {number} value */
  const y = (value) => (y0 + plot.valToPos(value, "y")).toFixed(1);
  /** @param {number | string} x @param {number | string} y @param {string} text @param {string} anchor @param {string} colour */
  const words = (x, y, text, anchor, colour = ink) => `<text x="${x}" y="${y}" fill="${colour}" text-anchor="${anchor}">${escaped(text)}</text>`;
  /** @param {string} name */
  const between = (name) => ticks(plot.scales[name].min ?? 0, plot.scales[name].max ?? 0);
  const grid = [...between("x").map((value) => `<path d="M${x(value)} ${y0}v${height}"/>`), ...between("y").map((value) => `<path d="M${x0} ${y(value)}h${width}"/>`)];
  const axes = [...between("x").map((value) => words(x(value), y0 + height + 18, value.toLocaleString("en"), "middle")),
    ...between("y").map((value) => words(x0 - 6, Number(y(value)) + 4, String(value), "end")), words(x0 + width / 2, y0 + height + 38, "updates", "middle"), words(x0 + width / 2, y0 - 10, figure, "middle")];
  const lines = plot.series.slice(1).map(({stroke, label, show}, number) => {
    const colour = String(typeof stroke === "function" ? stroke(plot, number + 1) : stroke);
    const points = [...plot.data[number + 1]].flatMap((value, place) => value == null ? [] : [`${x(Number(plot.data[0][place]))},${y(value)}`]);
    return show ? `<polyline clip-path="url(#plot)" points="${points.join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>${words(x0 + width - 6, y0 + 16 * (number + 1), String(label), "end", colour)}` : "";
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${whole.width}" height="${y0 + height + 48}" font-family="sans-serif" font-size="12"><clipPath id="plot"><rect x="${x0}" y="${y0}" width="${width}" height="${height}"/></clipPath><g stroke="#8884">${grid.join("")}</g>${axes.join("")}${lines.join("")}</svg>`;
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
