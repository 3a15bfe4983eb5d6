// Write: a prompt is continued as one watches. Every token has the colour of its rank; another can be taken in its place.
import {address, go, moved} from "../address.js";
import {events} from "../api.js";
import {SaveDrawn} from "../draw.js";
import {Choice, Field, html, percent, Slider, Trouble, Typed, useEffect, useRef, useRequest, useSignal} from "../ui.js";
import {glued, Tokens, Written} from "./tokens.js";

/** @typedef {import("../types").Model} Model */
/** @typedef {import("../types").Studio} Studio */

const NAMES = ["first 10", "first 100", "first 1,000", "others"];
const LONGEST = 4000, MOST_SAMPLES = 6;  // that a slider goes to

const DEFAULTS = {length: 200, temperature: 0.8, top_p: 1, samples: 1, seed: 1};

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

/** @param {{model: Model, studio: Studio}} props */
export function Write({model, studio}) {
  const {prompt, label, length, temperature, top_p, samples, seed} = asked();
  const texts = useSignal(/** @type {Written[]} */ ([])), drawn = useSignal(0);
  const {error, busy, run, stop} = useRequest();
  const {max_tokens, max_n} = studio.limits;
  const spoken = model.labels?.length ? label ?? model.labels[0] : undefined;

  function write() {
    const options = asked();
    const written = Array.from({length: options.samples}, () => new Written(options.prompt, model));
    texts.value = written;
    let waiting = 0;
    run(async (signal) => {
      const body = {
        model: model.id, prompt: options.prompt, max_tokens: options.length, temperature: options.temperature, top_p: options.top_p,
        seed: options.seed, n: options.samples, logprobs: 10, stream: true, ...(model.labels?.length ? {label: options.label ?? model.labels[0]} : {}),
      };
      for await (const event of events("/v1/completions", body, signal)) {
        for (const choice of event.choices) written[choice.index].add(choice);
        waiting ||= requestAnimationFrame(() => {  // however many tokens come, they are drawn once for each picture
          waiting = 0;
          drawn.value++;
        });
      }
    });
  }

  /** Sliders act at once, on a text that is there. @param {Record<string, string | number>} change */
  function turn(change) {
    go({...change, token: undefined});
    if (texts.value.length) write();
  }

  /** Go on from another beginning. @param {string} beginning */
  function take(beginning) {
    go({prompt: beginning, token: undefined}, {step: true});
    write();
  }

  useEffect(() => {
    if (asked().prompt) write();
    else {
      stop();
      texts.value = [];
    }
  }, [moved.value]);

  return html`<form class="split" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); write(); }}>
    <div>
      <${Field} name="Prompt">
        <textarea value=${prompt} placeholder="The beginning of a text" onInput=${(/** @type {any} */ e) => go({prompt: e.target.value, token: undefined})}
          onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) write(); }}></textarea><//>
      <div class="row"><button type="submit">Write</button>
        ${busy.value && html`<button type="button" class="quiet" onClick=${stop}>Stop</button>`}
        <span class="quietly"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span></div>
      <${Trouble} error=${error.value} />
      ${texts.value.length > 0 && html`<${Legend} /><div class="samples">${texts.value.map((text, place) => html`
        <${Sample} key=${place} number=${place} many=${texts.value.length > 1} text=${text} drawn=${drawn.value} busy=${busy.value} take=${take}
          save=${{model: model.id, view: "ranks", options: spoken ? {label: spoken} : {}}} />`)}</div>`}
    </div>
    <div class="controls" role="group" aria-label="sampling">
      <${Slider} name="temperature" value=${temperature} low=${0} high=${2} step=${0.05} change=${(/** @type {number} */ value) => turn({temperature: value})} />
      <${Slider} name="top p" value=${top_p} low=${0.05} high=${1} step=${0.05} change=${(/** @type {number} */ value) => turn({top_p: value})} />
      <${Slider} name="tokens" value=${length} low=${10} high=${Math.max(10, Math.min(LONGEST, max_tokens))} step=${10} change=${(/** @type {number} */ value) => turn({length: value})} />
      <${Slider} name="samples" value=${samples} low=${1} high=${Math.min(MOST_SAMPLES, max_n)} step=${1} change=${(/** @type {number} */ value) => turn({samples: value})} />
      <${Field} name="seed"><${Typed} type="number" min="0" value=${seed} change=${(/** @type {string} */ value) => turn({seed: value})} /><//>
      ${model.labels && spoken && html`<${Choice} name="label" value=${spoken} choices=${model.labels} change=${(/** @type {string} */ value) => turn({label: value})} />`}
    </div></form>`;
}

const Legend = () => html`<ul class="legend" aria-label="rank of a token among all">${NAMES.map((name, place) => html`<li><span class=${`b${place}`}>${name}</span></li>`)}</ul>`;

/** @param {{number: number, many: boolean, text: Written, drawn: number, busy: boolean, take: (text: string) => void, save: Record<string, unknown>}} props */
function Sample({number, many, text, drawn, busy, take, save}) {
  const [sample, place] = (address.value.token ?? "").split(":").map(Number);
  const chosen = address.value.token && sample === number && place < text.tokens.length ? place : -1;
  /** @param {number} to */
  const choose = (to) => go({token: to < 0 ? undefined : `${number}:${to}`});
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const close = () => {
    /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector("[data-place][tabindex]"))?.focus();
    choose(-1);
  };
  useEffect(() => {  // what is shown of a token does not hide it
    const token = box.current?.querySelector(".m")?.getBoundingClientRect(), others = box.current?.querySelector(".alternatives")?.getBoundingClientRect();
    if (token && others && token.bottom > others.top) scrollBy(0, token.bottom - others.top + 12);
  }, [chosen]);
  /** @param {string} beginning */
  const goOn = (beginning) => {
    box.current?.focus();
    take(beginning);
  };
  return html`<section class="written" ref=${box} tabindex="-1" aria-label=${many ? `sample ${number + 1}` : "the text"}>
    ${many && html`<h3>sample ${number + 1}</h3>`}
    <${Tokens} text=${text} drawn=${drawn} chosen=${chosen} choose=${choose} />
    ${chosen >= 0 && html`<${Others} text=${text} place=${chosen} take=${goOn} close=${close} />`}
    ${!busy && text.tokens.length > 0 && html`<${SaveDrawn} path="/v1/explain" body=${{...save, input: text.whole()}} name=${`${save.model}-text`} />`}
    </section>`;
}

/** A token as it is read: what has no look of its own gets one. @param {string} text */
const shown = (text) => text.replaceAll("\n", "⏎").replace(/^ +$/, (blanks) => "␣".repeat(blanks.length)) || "∅";

/** What could stand in the place of a token. @param {{text: Written, place: number, take: (text: string) => void, close: () => void}} props */
function Others({text, place, take, close}) {
  const token = text.tokens[place];
  return html`<div class="alternatives" role="group" aria-label="in its place" onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Escape") close(); }}>
    <p>“${shown(text.piece(place))}” has rank ${token.rank.toLocaleString("en")}, ${percent(Math.exp(token.logprob))}. In its place:</p>
    <ul>${token.alternatives.map(({text: other, logprob}) => {
      const beginning = glued(text, place, other);
      return html`<li><button type="button" class="quiet" disabled=${beginning === null} title=${beginning === null ? "no text goes on from it" : undefined}
          onClick=${() => take(/** @type {string} */ (beginning))}>${shown(other)}</button>
        <span>${percent(Math.exp(logprob))}</span><meter min="0" max="1" value=${Math.exp(logprob)} aria-hidden="true"></meter></li>`;
    })}</ul>
    <button type="button" class="quiet" onClick=${close}>Close</button></div>`;
}
