// Pictures: what a model says of an image, or answers to a question about it, and where it looked for each word.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {Panels, SaveDrawn, SavePicture} from "../draw.js";
import {Field, html, moveBy, signal, Trouble, useDropped, useEffect, useRef, useRequest, useSettled, useSignal} from "../ui.js";
import {Probabilities} from "./answers.js";
import {opened} from "./images.js";
import {noOptions, Options, optionValues} from "./options.js";

/** @typedef {import("../types").Model} Model */
/** @typedef {import("../types").Studio} Studio */
/** @typedef {import("./images.js").Opened} Opened */
/** @typedef {{title: string, values: number[][], decides?: boolean}} Look */

const PAUSE = 250;  // milliseconds without a change after which the model is asked

/** The image that is seen: it has no room in the address, and stays while other views and models are looked at. */
const image = signal(/** @type {Opened | null} */ (null));

/** @param {{model: Model, studio: Studio}} props */
export function Pictures({model, studio}) {
  const question = address.value.question ?? "", asks = model.task === "answer";
  const said = useRequest(), looked = useRequest(), file = useRequest();
  const view = model.views.find(({name}) => name === "image"), options = view ? optionValues(view) : {};
  const seen = image.value, ready = seen && (!asks || question.trim());
  const records = [{image: seen?.content ?? "", ...(asks ? {question} : {})}];
  const body = {model: model.id, records, view: "image", options};
  useSettled(() => {
    if (!ready) {
      said.stop();
      looked.stop();
      said.answer.value = looked.answer.value = null;
      return;
    }
    said.run(async (abort) => (await ask("/v1/predict", {model: model.id, records, options: asks ? {} : {n_best: Math.min(3, studio.limits.max_n)}}, abort)).results[0]);
    if (view) looked.run(async (abort) => (await ask("/v1/explain", body, abort)).texts[0]);
  }, asks ? PAUSE : 0, [seen, question, JSON.stringify(options)]);

  /** @param {File} given */
  const take = (given) => {
    go({word: undefined, ...noOptions()});
    file.run(async (abort) => {
      const found = await opened(given, studio.limits.max_bytes);
      if (!abort.aborted) image.value = found;  // else another one was given meanwhile
    });
  };
  const over = useDropped(take, [studio]);
  useEffect(() => {
    /** @param {ClipboardEvent} event */
    const paste = (event) => { if (event.clipboardData?.files[0]) take(event.clipboardData.files[0]); };
    document.addEventListener("paste", paste);
    return () => document.removeEventListener("paste", paste);
  }, [studio]);

  const looks = seen && looked.answer.value ? looksOf(looked.answer.value) : [];
  return html`<div class="split"><div>
      <div class=${`drop ${over.value ? "over" : ""}`}>
        <${Field} name=${seen ? "another image: drop, paste or choose it" : "drop an image anywhere on the page, paste it, or choose it"}>
          <input type="file" accept="image/*" onChange=${(/** @type {any} */ e) => { if (e.target.files[0]) take(e.target.files[0]); }} /><//></div>
      <${Trouble} error=${file.error.value} />
      ${asks && html`<div class="row wide"><${Field} name="Question"><input value=${question} onInput=${(/** @type {any} */ e) => go({question: e.target.value})} /><//></div>`}
      <${Trouble} error=${said.error.value ?? looked.error.value} />
      <div class=${said.busy.value || looked.busy.value ? "busy" : ""}>
        <div class="sides">
        ${seen && html`<${Looking} image=${seen} looks=${looks} data=${looked.answer.value} name=${`${model.id}-look`} />`}
        <div>${said.answer.value && !asks && html`<${Captions} found=${said.answer.value} looks=${view !== undefined} />`}
        ${said.answer.value?.answer && html`<${Probabilities} answer=${{label: said.answer.value.answer, probabilities: said.answer.value.probabilities}} />`}
          ${seen?.smaller && html`<p class="quietly">The image was made smaller before it was sent.</p>`}</div></div>
        ${looked.answer.value && html`<${All} body=${body} name=${`${model.id}-image`} when=${[seen, question, JSON.stringify(options)]} />`}</div>
    </div>
    ${view && html`<div class="controls" role="group" aria-label="where it looks"><p class="quietly">${view.about}</p><${Options} view=${view} model=${model} /></div>`}
    </div>`;
}

/** What there is to step through: the image itself, then a look for each word; of an answer, glimpses and the places that decide. @param {any} found @returns {Look[]} */
function looksOf(found) {
  const whole = {title: "the image", values: []};
  if (found.caption !== undefined) return [whole, ...found.tokens.map((/** @type {string} */ title, /** @type {number} */ place) => ({title, values: found.attention[place]}))];
  const glimpses = found.attention.map((/** @type {number[][]} */ values, /** @type {number} */ place) => ({title: found.glimpses[place], values}));
  return [whole, ...glimpses, {title: `what decides for “${found.target}”`, values: found.places, decides: true}];
}

/**
 * An image with what one look at it weighs; the words are stepped through by pointer or keys.
 * @param {{image: Opened, looks: Look[], data: unknown, name: string}} props
 */
function Looking({image, looks, data, name}) {
  const picture = useRef(/** @type {SVGSVGElement | null} */ (null)), row = useRef(/** @type {HTMLElement | null} */ (null));
  const pointed = useSignal(-1);
  const chosen = Math.min(Number(address.value.word ?? 0) || 0, Math.max(looks.length - 1, 0));
  const look = looks[pointed.value >= 0 ? pointed.value : chosen], cells = look ? shades(look) : [];
  /** @param {number} place */
  const choose = (place) => go({word: place || undefined});
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    const to = moveBy(event, chosen, looks.length);
    if (to === undefined) return;
    pointed.value = -1;
    choose(to);
    /** @type {HTMLElement} */ (row.current?.children[to]).focus();
  };
  return html`<figure class="looking">
    ${looks.length > 0 && html`<div class="words-row" role="group" aria-label="where it looked, word by word" ref=${row} onKeyDown=${keys} onPointerLeave=${() => { pointed.value = -1; }}>
      ${looks.map(({title}, place) => html`<button type="button" class="quiet" key=${place} aria-pressed=${place === chosen} tabindex=${place === chosen ? 0 : -1}
        onPointerEnter=${() => { pointed.value = place; }} onClick=${() => choose(place)}>${title}</button>`)}</div>`}
    <svg ref=${picture} viewBox=${`0 0 ${image.width} ${image.height}`} preserveAspectRatio="xMinYMin" role="img" aria-label=${look ? spoken(look) : "the image"}>
      <image href=${image.url} width=${image.width} height=${image.height} />
      ${cells.map(({row, column, rows, columns, colour, hidden, value}) => html`<rect x=${column / columns * image.width} y=${row / rows * image.height} width=${image.width / columns} height=${image.height / rows}
        fill=${colour} fill-opacity=${hidden.toFixed(3)} shape-rendering="crispEdges"><title>${value}</title></rect>`)}</svg>
    ${look && html`<figcaption class="quietly" aria-live="polite">${spoken(look)}</figcaption><${SavePicture} find=${() => picture.current} data=${data} name=${name} />`}</figure>`;
}

/** The colour over each cell of the grid, and how much of the image it hides: as pages of `elman explain` have it. @param {Look} look */
function shades({values, decides}) {
  const most = Math.max(...values.flat().map(Math.abs)) || 1;
  return values.flatMap((line, row) => line.map((value, column) => ({
    row, column, rows: values.length, columns: line.length, value: Number(value.toPrecision(3)),
    colour: decides ? (value > 0 ? "#b3261e" : "#1f5fa8") : "#000000",
    hidden: decides ? 0.7 * Math.abs(value) / most : 0.8 * (1 - Math.max(value, 0) / most),
  })));
}

/** Where a look went, for those who hear the page. @param {Look} look */
function spoken({title, values, decides}) {
  if (!values.length) return title;
  const most = Math.max(...values.flat()), row = values.findIndex((line) => line.includes(most)), column = values[row].indexOf(most);
  const down = ["the top", "the middle", "the bottom"][Math.floor(3 * row / values.length)], across = ["left", "centre", "right"][Math.floor(3 * column / values[row].length)];
  return `${decides ? title : `“${title}”`}: most at ${down}, ${across} (row ${row + 1} of ${values.length}, column ${column + 1} of ${values[row].length}: ${most.toPrecision(2)})`;
}

/** The caption, and others; one of them can be looked for in the place of the model's own. @param {{found: any, looks: boolean}} props */
const Captions = ({found, looks}) => html`<p class="text caption" dir="auto" aria-live="polite">${found.caption}</p>
  ${found.n_best?.length > 1 && html`<h2>Others</h2><ol>${found.n_best.slice(1).map((/** @type {any} */ one) => html`<li dir="auto">${one.caption} <span class="quietly">${one.score.toFixed(3)}</span>
    ${looks && html` <button type="button" class="quiet" onClick=${() => go({"o.target": one.caption, word: undefined}, {step: true})}>look for it</button>`}</li>`)}</ol>`}`;

/** All looks side by side, as the service draws them; `when` is what the body follows from. @param {{body: Record<string, unknown>, name: string, when: unknown[]}} props */
function All({body, name, when}) {
  const {answer, error, run} = useRequest();
  const open = address.value.all === "1";
  useSettled(() => { if (open) run((abort) => ask("/v1/explain", {...body, format: "panels"}, abort)); }, PAUSE, [open, ...when]);
  return html`<details open=${open} onToggle=${(/** @type {any} */ e) => go({all: e.target.open ? "1" : undefined})}><summary>All of it side by side</summary>
    <${Trouble} error=${error.value} />${open && answer.value && html`<${Panels} drawn=${answer.value} /><${SaveDrawn} path="/v1/explain" body=${body} name=${name} />`}</details>`;
}
