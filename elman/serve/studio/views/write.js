// Write: a prompt is continued as one watches. Every token has the colour of its rank; another can be taken in its place.
import {address, go} from "../address.js";
import {events} from "../api.js";
import {Choice, Field, html, percent, Slider, Trouble, useEffect, useMemo, useRef, useRequest, useSignal} from "../ui.js";

/** @typedef {import("../types").Model} Model */
/** @typedef {import("../types").Written} Written */

const BUCKETS = [10, 100, 1000, Infinity];
const NAMES = ["first 10", "first 100", "first 1,000", "others"];
const BLOCK = 200;  // tokens that are laid out together: what is not seen is not drawn

const DEFAULTS = {prompt: "", length: 200, temperature: 0.8, top_p: 1, samples: 1, seed: 1};

/** What is asked for, as the address has it. */
function asked() {
  const said = address.value;
  /** @param {"length" | "temperature" | "top_p" | "samples" | "seed"} name */
  const number = (name) => Number(said[name] ?? DEFAULTS[name]);
  return {
    prompt: said.prompt ?? "", label: said.label, length: number("length"), temperature: number("temperature"),
    top_p: number("top_p"), samples: number("samples"), seed: number("seed"),
  };
}

/** @param {any} choice @returns {Written[]} */
function tokensOf(choice) {
  const {tokens, token_logprobs, ranks, top_logprobs} = choice.logprobs;
  return tokens.map((/** @type {string} */ text, /** @type {number} */ place) => ({
    text, logprob: token_logprobs[place], rank: ranks[place],
    alternatives: Object.entries(top_logprobs[place]).map(([other, logprob]) => ({text: other, logprob: Number(logprob)})),
  }));
}

/** @param {{model: Model}} props */
export function Write({model}) {
  const {prompt, label, length, temperature, top_p, samples, seed} = asked();
  const texts = useSignal(/** @type {Written[][]} */ ([]));
  const beginning = useSignal("");
  const {error, busy, run, stop} = useRequest();

  /** @param {string} from */
  function write(from) {
    const options = asked();
    texts.value = Array.from({length: options.samples}, () => []);
    beginning.value = from;
    run(async (signal) => {
      const body = {
        model: model.id, prompt: from, max_tokens: options.length, temperature: options.temperature, top_p: options.top_p,
        seed: options.seed, n: options.samples, logprobs: 10, stream: true, ...(model.labels?.length ? {label: options.label ?? model.labels[0]} : {}),
      };
      for await (const event of events("/v1/completions", body, signal)) {
        const grown = [...texts.value];
        for (const choice of event.choices) if (choice.logprobs) grown[choice.index] = [...grown[choice.index], ...tokensOf(choice)];
        texts.value = grown;
      }
    });
  }

  /** Sliders act at once, on a text that is there. @param {Record<string, string | number>} change */
  function turn(change) {
    go(change);
    if (texts.value.length) write(asked().prompt);
  }

  useEffect(() => { if (prompt) write(prompt); }, []);

  return html`<form class="split" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); write(prompt); }}>
    <div>
      <${Field} name="Prompt">
        <textarea value=${prompt} placeholder="The beginning of a text" onInput=${(/** @type {any} */ e) => go({prompt: e.target.value})}
          onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) write(prompt); }}></textarea><//>
      <div class="row"><button type="submit">Write</button>
        ${busy.value && html`<button type="button" class="quiet" onClick=${stop}>Stop</button>`}
        <span class="quietly"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span></div>
      <${Trouble} error=${error.value} />
      ${texts.value.length > 0 && html`<${Legend} /><div class="samples" aria-live="off">${texts.value.map((tokens, place) => html`
        <${Sample} key=${place} number=${place} many=${texts.value.length > 1} beginning=${beginning.value} tokens=${tokens}
          take=${(/** @type {string} */ text) => { go({prompt: text}, {step: true}); write(text); }} />`)}</div>`}
    </div>
    <div class="controls" role="group" aria-label="sampling">
      <${Slider} name="temperature" value=${temperature} low=${0} high=${2} step=${0.05} change=${(/** @type {number} */ value) => turn({temperature: value})} />
      <${Slider} name="top p" value=${top_p} low=${0.05} high=${1} step=${0.05} change=${(/** @type {number} */ value) => turn({top_p: value})} />
      <${Slider} name="tokens" value=${length} low=${10} high=${1000} step=${10} change=${(/** @type {number} */ value) => turn({length: value})} />
      <${Slider} name="samples" value=${samples} low=${1} high=${6} step=${1} change=${(/** @type {number} */ value) => turn({samples: value})} />
      <${Field} name="seed"><input type="number" min="0" value=${seed} onChange=${(/** @type {any} */ e) => turn({seed: e.target.value})} /><//>
      ${model.labels && model.labels.length > 0 && html`<${Choice} name="label" value=${label ?? model.labels[0]} choices=${model.labels} change=${(/** @type {string} */ value) => turn({label: value})} />`}
    </div></form>`;
}

const Legend = () => html`<ul class="legend" aria-label="rank of a token among all">${NAMES.map((name, place) => html`<li><span class=${`b${place}`}>${name}</span></li>`)}</ul>`;

/** @param {{number: number, many: boolean, beginning: string, tokens: Written[], take: (text: string) => void}} props */
function Sample({number, many, beginning, tokens, take}) {
  const chosen = useSignal(-1), reached = useSignal(0), text = useRef(/** @type {HTMLElement | null} */ (null));
  const blocks = [];
  for (let start = 0; start < tokens.length; start += BLOCK) blocks.push(start);
  /** @param {number} place */
  const before = (place) => beginning + tokens.slice(0, place).map(({text}) => text).join("");
  const token = tokens[chosen.value];
  /** @param {Event} event */
  const placeOf = (event) => Number(/** @type {HTMLElement} */ (event.target).dataset.place ?? -1);
  /** @param {number} place */
  const reach = (place) => {
    if (place < 0 || place >= tokens.length) return;
    reached.value = place;
    requestAnimationFrame(() => /** @type {HTMLElement | null} */ (text.current?.querySelector(`[data-place="${place}"]`))?.focus());
  };
  /** Arrow keys go from token to token, Enter opens one. @param {KeyboardEvent} event */
  const keys = (event) => {
    const place = placeOf(event), step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (place < 0 || !(step || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    if (step) reach(place + step);
    else chosen.value = place;
  };
  return html`<section class="written" aria-label=${many ? `sample ${number + 1}` : "the text"}>
    ${many && html`<h3>sample ${number + 1}</h3>`}
    <p class="text" dir="auto" ref=${text} onKeyDown=${keys} onClick=${(/** @type {Event} */ e) => { if (placeOf(e) >= 0) { chosen.value = placeOf(e); reached.value = placeOf(e); } }}>
      <bdi>${beginning}</bdi>${blocks.map((start) => html`<${Block} key=${start} start=${start} tokens=${tokens} end=${Math.min(start + BLOCK, tokens.length)} alone=${blocks.length < 3}
        reached=${reached.value >= start && reached.value < start + BLOCK ? reached.value : -1} />`)}</p>
    ${token && html`<div class="alternatives" role="group" aria-label="in its place">
      <p>“${token.text}” has rank ${token.rank.toLocaleString("en")}, ${percent(Math.exp(token.logprob))}. In its place:</p>
      <ul>${token.alternatives.map(({text, logprob}) => html`<li>
        <button type="button" class="quiet" onClick=${() => { take(before(chosen.value) + text); chosen.value = -1; }}>${text.replaceAll("\n", "⏎") || "∅"}</button>
        <span>${percent(Math.exp(logprob))}</span><meter min="0" max="1" value=${Math.exp(logprob)} aria-hidden="true"></meter></li>`)}</ul>
      <button type="button" class="quiet" onClick=${() => { chosen.value = -1; }}>Close</button></div>`}
    </section>`;
}

/** Some tokens, which are laid out again only when they change. @param {{start: number, end: number, tokens: Written[], alone: boolean, reached: number}} props */
function Block({start, end, tokens, alone, reached}) {
  return useMemo(() => html`<span class=${alone ? "" : "block"}>${tokens.slice(start, end).map(({text, rank}, offset) => {
    const here = start + offset === reached;
    return html`<span data-place=${start + offset} class=${`b${BUCKETS.findIndex((limit) => rank <= limit)}`} tabindex=${here ? 0 : undefined} role=${here ? "button" : undefined}
      aria-label=${here ? `${text}, rank ${rank}: others in its place` : undefined}>${text}</span>`;
  })}</span>`, [end, reached, alone]);
}
