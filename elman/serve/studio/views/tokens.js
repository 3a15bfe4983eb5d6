// A text that is being written, and its tokens on the colours of their ranks. Of a long one only what is seen is drawn.
import {html, useEffect, useLayoutEffect, useMemo, useRef, useSignal} from "../ui.js";

/** @typedef {import("../types").Model} Model */
/** @typedef {import("../types").Alternative} Alternative */
/** @typedef {{start: number, logprob: number, rank: number, name: string, alternatives: Alternative[]}} Token */

const BUCKETS = [10, 100, 1000, Infinity];
const FEWEST = 150, MOST = 600;  // tokens of a block, which ends with a line where it can
const AHEAD = "400px 0px";  // how far from what is seen a block is drawn already
const END = "<eos>", UNKNOWN = "<unk>";

/** A text: what was given, and the tokens behind it; where a model writes from the end, before it. */
export class Written {
  /** @param {string} prompt @param {Model} model */
  constructor(prompt, model) {
    this.prompt = prompt;
    this.words = model.tokens === "words";
    this.backward = model.direction === "backward";
    /** @type {string[]} characters, as the service counts them */
    this.characters = [];
    /** @type {Token[]} */
    this.tokens = [];
    /** @type {number[]} where blocks begin */
    this.blocks = [];
  }

  /** What came of one more event. @param {any} choice */
  add(choice) {
    if (!choice.logprobs) return;
    this.characters.push(...choice.text);
    const {tokens, token_logprobs, ranks, top_logprobs, text_offset} = choice.logprobs;
    tokens.forEach((/** @type {string} */ name, /** @type {number} */ at) => {
      this._block(text_offset[at]);
      const alternatives = Object.entries(top_logprobs[at]).map(([text, logprob]) => ({text, logprob: Number(logprob)}));
      this.tokens.push({name, start: text_offset[at], logprob: token_logprobs[at], rank: ranks[at], alternatives});
    });
  }

  /** Begin a block with the token at `start` where the one before is long enough. @param {number} start */
  _block(start) {
    const count = this.tokens.length, size = count - (this.blocks.at(-1) ?? -MOST);
    const last = this.backward ? this.tokens.at(-1)?.name : this.characters[start - 1];
    if (size >= MOST || (size >= FEWEST && last === "\n")) this.blocks.push(count);
  }

  /** The characters that a token stands for. @param {number} place */
  piece(place) {
    const token = this.tokens[place];
    if (this.backward) return this.words ? `${token.name} ` : token.name;
    return this.characters.slice(token.start, this.tokens[place + 1]?.start ?? this.characters.length).join("");
  }

  /** What stands before a token, or, of a model that writes from the end, behind it. @param {number} place */
  known(place) {
    if (this.backward) return this.tokens.slice(0, place).map((_, at) => this.piece(at)).reverse().join("") + this.prompt;
    return this.prompt + this.characters.slice(0, this.tokens[place].start).join("");
  }

  /** All of it. */
  whole() {
    if (this.backward) return this.tokens.map((_, at) => this.piece(at)).reverse().join("") + this.prompt;
    return this.prompt + this.characters.join("");
  }
}

/**
 * What to go on from with another token in a place; null where no text has it.
 * @param {Written} text @param {number} place @param {string} other
 */
export function glued(text, place, other) {
  const known = text.known(place);
  if (other === UNKNOWN || (other === END && !text.words)) return null;
  const name = other === END ? "\n" : other;
  if (text.backward) return text.words ? `${name} ${known}` : name + known;
  return known + (text.words && name !== "\n" && known && !/\s$/.test(known) ? " " : "") + name;
}

/**
 * The tokens of a text; arrow keys go from one to the next, Enter opens one. `drawn` says that there are new ones.
 * @param {{text: Written, drawn: number, chosen: number, choose: (place: number) => void}} props
 */
export function Tokens({text, drawn, chosen, choose}) {
  const root = useRef(/** @type {HTMLElement | null} */ (null)), reached = useSignal(0);
  const watch = useMemo(() => new Watch(), []);
  useEffect(() => () => watch.end(), []);
  /** @param {Event} event */
  const placeOf = (event) => Number(/** @type {HTMLElement} */ (event.target).dataset.place ?? -1);
  const wanted = useRef(false);
  const focus = () => /** @type {HTMLElement | null} */ (root.current?.querySelector(`[data-place="${reached.value}"]`))?.focus();
  useLayoutEffect(() => {  // not before it is drawn: what Tab does not come to cannot have the focus
    if (wanted.current) focus();
    wanted.current = false;
  });
  /** @param {number} place */
  const reach = (place) => {
    wanted.current = place !== reached.value;
    reached.value = place;
    if (!wanted.current) focus();
  };
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    const place = placeOf(event) < 0 ? -1 : reached.value;  // where the focus will be once it is drawn: keys may come sooner
    const ahead = text.backward ? -1 : 1, step = {ArrowRight: ahead, ArrowLeft: -ahead}[event.key];
    if (place < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!step && !["Enter", " ", "Escape"].includes(event.key)) return;
    event.preventDefault();
    if (step) reach(Math.max(0, Math.min(place + step, text.tokens.length - 1)));
    else choose(event.key === "Escape" ? -1 : place);
  };
  /** @param {Event} event */
  const clicked = (event) => {
    const place = placeOf(event);
    if (place < 0) return;
    reach(place);
    choose(place);
  };
  const blocks = text.blocks.map((start, at) => {
    const end = text.blocks[at + 1] ?? text.tokens.length, inside = reached.value >= start && reached.value < end;
    return html`<${Block} key=${start} text=${text} start=${start} end=${end} reached=${inside ? reached.value : -1}
      chosen=${chosen >= start && chosen < end ? chosen : -1} watch=${watch} />`;
  });
  return html`<p class="text" dir="auto" ref=${root} onKeyDown=${keys} onClick=${clicked}>
    ${text.backward ? blocks.reverse() : null}${(text.backward || !blocks.length) && html`<bdi>${text.prompt}</bdi>`}${text.backward ? null : blocks}</p>`;
}

/** Which blocks are near to what is seen. */
class Watch {
  constructor() {
    /** @type {WeakMap<Element, (near: boolean) => void>} */
    this.told = new WeakMap();
    this.observer = new IntersectionObserver((entries) => {
      for (const {target, isIntersecting} of entries) this.told.get(target)?.(isIntersecting);
    }, {rootMargin: AHEAD});
  }

  /** @param {Element} block @param {(near: boolean) => void} tell */
  on(block, tell) {
    this.told.set(block, tell);
    this.observer.observe(block);
    return () => this.observer.unobserve(block);
  }

  end() {
    this.observer.disconnect();
  }
}

/**
 * Some tokens. Far from what is seen they are plain text, of the same height: it can be read and searched, and costs nothing.
 * @param {{text: Written, start: number, end: number, reached: number, chosen: number, watch: Watch}} props
 */
function Block({text, start, end, reached, chosen, watch}) {
  const box = useRef(/** @type {HTMLElement | null} */ (null)), near = useSignal(true);
  useEffect(() => watch.on(/** @type {HTMLElement} */ (box.current), (is) => { near.value = is; }), []);
  const seen = near.value || reached >= 0;
  const prompt = start === 0 && !text.backward && html`<bdi>${text.prompt}</bdi>`;
  const places = Array.from({length: end - start}, (_, at) => text.backward ? end - 1 - at : start + at);
  const inner = useMemo(() => seen ? places.map((place) => token(text, place, place === reached, place === chosen)) : places.map((place) => text.piece(place)).join(""),
    [seen, end, reached, chosen, text, text.piece(end - 1)]);
  return html`<span class="block" ref=${box}>${prompt}${inner}</span>`;
}

/** @param {Written} text @param {number} place @param {boolean} reached @param {boolean} chosen */
function token(text, place, reached, chosen) {
  const piece = text.piece(place), {rank} = text.tokens[place];
  const names = [`b${BUCKETS.findIndex((limit) => rank <= limit)}`, chosen && "m", piece === "\n" && "line"].filter(Boolean).join(" ");
  return html`<span key=${place} data-place=${place} class=${names} tabindex=${reached ? 0 : undefined} role=${reached ? "button" : undefined}
    aria-label=${reached ? `${piece === "\n" ? "line end" : piece}, rank ${rank}: others in its place` : undefined}>${piece || "∅"}</span>`;
}
