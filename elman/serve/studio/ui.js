// What the views are written with: markup, state, and the few controls that all of them have.
import {h} from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import {useEffect, useLayoutEffect, useRef} from "./vendor/hooks.js";
import {useSignal} from "./vendor/signals.js";
import {Refused} from "./api.js";

export {Fragment, render} from "./vendor/preact.js";
export {useEffect, useLayoutEffect, useMemo, useRef} from "./vendor/hooks.js";
export {batch, computed, effect, signal, useComputed, useSignal} from "./vendor/signals.js";
export const html = htm.bind(h);

/** @param {{name: string, children?: any, hint?: string}} props */
export const Field = ({name, children, hint}) => html`
  <label class="field"><span class="field-name">${name}</span>${children}${hint && html`<small>${hint}</small>`}</label>`;

/**
 * A field that counts when it is left or Enter is pressed: until then it keeps what is typed, whatever is drawn meanwhile.
 * @param {{value: string | number, change: (value: string) => void} & Record<string, unknown>} props
 */
export function Typed({value, change, ...rest}) {
  const typed = useSignal(/** @type {string | null} */ (null));
  return html`<input ...${rest} value=${typed.value ?? value} onInput=${(/** @type {any} */ e) => { typed.value = e.target.value; }}
    onChange=${(/** @type {any} */ e) => { typed.value = null; change(e.target.value); }} onBlur=${() => { typed.value = null; }} />`;
}

/**
 * A number that is pulled.
 * @param {{name: string, value: number, low: number, high: number, step: number, change: (value: number) => void}} props
 */
export const Slider = ({name, value, low, high, step, change}) => html`
  <${Field} name=${name}>
    <input type="range" min=${low} max=${high} step=${step} value=${value} onInput=${(/** @type {any} */ e) => change(Number(e.target.value))} />
    <output>${value}</output>
  <//>`;

/**
 * One of some words.
 * @param {{name: string, value: string, choices: (string | [string, string])[], change: (value: string) => void}} props
 */
export const Choice = ({name, value, choices, change}) => html`
  <${Field} name=${name}>
    <select value=${value} onChange=${(/** @type {any} */ e) => change(e.target.value)}>
      ${choices.map((choice) => {
        const [key, shown] = typeof choice === "string" ? [choice, choice] : choice;
        return html`<option value=${key} selected=${key === value}>${shown}</option>`;
      })}
    </select>
  <//>`;

/** @param {{error: Error | null}} props */
export const Trouble = ({error}) => error && html`<p class="trouble" role="alert">${error.message}</p>`;

/**
 * What a request gave, whether one is under way, and what went wrong. A new request takes the place of the one before.
 * @template T
 */
export function useRequest() {
  const answer = useSignal(/** @type {T | null} */ (null));
  const error = useSignal(/** @type {Error | null} */ (null));
  const busy = useSignal(false);
  const current = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => () => current.current?.abort(), []);
  /** @param {(signal: AbortSignal) => Promise<T>} make */
  async function run(make) {
    current.current?.abort();
    const own = current.current = new AbortController();
    busy.value = true;
    try {
      const made = await make(own.signal);
      if (own.signal.aborted) return;
      answer.value = made;
      error.value = null;
    } catch (caught) {
      if (own.signal.aborted) return;
      if (!(caught instanceof Refused)) console.error(caught);
      error.value = /** @type {Error} */ (caught);
    } finally {
      if (current.current === own) busy.value = false;
    }
  }
  function stop() {
    current.current?.abort();
    busy.value = false;
  }
  return {answer, error, busy, run, stop};
}

/**
 * Do something when what it follows from has not changed for a moment, which begins with the change and not with the next picture.
 * @param {() => void} what @param {number} milliseconds @param {any[]} when
 */
export function useSettled(what, milliseconds, when) {
  useLayoutEffect(() => {
    const timer = setTimeout(what, milliseconds);
    return () => clearTimeout(timer);
  }, when);
}

/**
 * Files that are dropped anywhere on the page are taken; gives whether one is held over it.
 * @param {(file: File) => void} take @param {any[]} when what `take` follows from
 */
export function useDropped(take, when) {
  const over = useSignal(false);
  useEffect(() => {
    const stop = new AbortController(), listen = {signal: stop.signal};
    document.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;  // a part of a text goes where it is let fall
      event.preventDefault();
      over.value = true;
    }, listen);
    document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) over.value = false; }, listen);
    document.addEventListener("drop", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      over.value = false;
      const file = event.dataTransfer.files[0];
      if (file) take(file);
    }, listen);
    return () => stop.abort();
  }, when);
  return over;
}

/**
 * Arrow keys go from part to part of a row, of which one is in the order of Tab: a number for each key that moves.
 * @param {KeyboardEvent} event @param {number} place @param {number} count @returns {number | undefined}
 */
export function moveBy(event, place, count) {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const to = {ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: count - 1}[event.key];
  if (to === undefined) return undefined;
  event.preventDefault();
  return Math.max(0, Math.min(to, count - 1));
}

/** @param {Blob | string} content @param {string} name @param {string} [type] */
export function download(content, name, type = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(typeof content === "string" ? new Blob([content], {type}) : content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** @param {number} share */
export const percent = (share) => `${(100 * share).toFixed(share > 0.9995 || share < 0.0995 ? 2 : 1)} %`;
