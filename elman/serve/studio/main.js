// The frame: which models there are, which views they have, and what the address says is seen.
import {address, go} from "./address.js";
import {ask} from "./api.js";
import {html, render, signal, Trouble, useEffect} from "./ui.js";
import {Inside} from "./views/inside.js";
import {Lab} from "./views/lab.js";
import {Pictures} from "./views/pictures.js";
import {Read} from "./views/read.js";
import {Train} from "./views/train.js";
import {Translate} from "./views/translate.js";
import {Write} from "./views/write.js";

/** @typedef {import("./types").Model} Model */
/** @typedef {import("./types").Studio} Studio */

/** A view: what it is called, for which tasks it is, and what draws it. A view without tasks is for no model. */
const VIEWS = [
  {id: "write", name: "Write", tasks: ["lm"], view: Write},
  {id: "read", name: "Read", tasks: ["classify", "tag", "tree"], view: Read},
  {id: "translate", name: "Translate", tasks: ["translate"], view: Translate},
  {id: "pictures", name: "Pictures", tasks: ["caption", "answer"], view: Pictures},
  {id: "inside", name: "Inside", tasks: ["lm", "classify", "tag", "translate", "embed", "tree"], view: Inside},
  {id: "train", name: "Train", tasks: null, view: Train},
  {id: "lab", name: "Lab", tasks: null, view: Lab},
];

const models = signal(/** @type {Model[]} */ ([]));
const studio = signal(/** @type {Studio | null} */ (null));
const trouble = signal(/** @type {Error | null} */ (null));

async function load() {
  try {
    const [listed, about] = await Promise.all([ask("/v1/models"), ask("/v1/studio")]);
    models.value = listed.data;
    studio.value = about;
    trouble.value = null;
  } catch (error) {
    trouble.value = /** @type {Error} */ (error);
  }
}

/** The views that there is something to see in. */
function offered() {
  return VIEWS.filter(({tasks}) => !tasks || models.value.some((model) => tasks.includes(model.task)));
}

function Tabs() {
  const seen = current().id;
  return html`<nav aria-label="views"><ul>${offered().map(({id, name}, place) => html`
    <li><a href=${`#/${id}`} aria-current=${id === seen ? "page" : undefined} aria-keyshortcuts=${`Alt+${place + 1}`}
      onClick=${(/** @type {Event} */ e) => { e.preventDefault(); show(id); }}>${name}</a></li>`)}</ul></nav>`;
}

/** @param {string} id */
function show(id) {
  const {tasks} = /** @type {typeof VIEWS[number]} */ (VIEWS.find((view) => view.id === id));
  const kept = models.value.find((model) => model.id === address.value.model && tasks?.includes(model.task));
  const change = /** @type {Record<string, string | undefined>} */ ({});
  for (const key of Object.keys(address.value)) change[key] = undefined;
  go({...change, view: id, model: kept?.id, text: kept ? address.value.text : undefined}, {step: true});
}

function current() {
  const views = offered();
  return views.find(({id}) => id === address.value.view) ?? views[0];
}

function App() {
  useEffect(() => { load(); }, []);
  if (!studio.value) return html`<header class="top"><span class="brand"><img src="icon.svg" alt="" width="24" height="24" /> Elman</span></header>
    <main><h1 class="spoken">Elman Studio</h1>${trouble.value ? html`<${Trouble} error=${trouble.value} />` : html`<p class="quietly" role="status">opening …</p>`}</main>`;
  const {view: View, tasks, id} = current();
  const fitting = tasks ? models.value.filter((model) => tasks.includes(model.task)) : [];
  const model = fitting.find((one) => one.id === address.value.model) ?? fitting[0];
  document.title = `${model ? `${model.id}: ` : ""}${current().name.toLowerCase()} — Elman Studio`;
  return html`
    <header class="top"><a class="brand" href="#/" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); show(offered()[0].id); }}>
      <img src="icon.svg" alt="" width="24" height="24" /> Elman</a><${Tabs} />
      ${fitting.length > 0 && html`<label class="pick"><span>model</span><select value=${model.id}
        onChange=${(/** @type {any} */ e) => go({model: e.target.value}, {step: true})}>
        ${fitting.map((one) => html`<option value=${one.id} selected=${one.id === model.id}>${one.id}</option>`)}</select></label>`}
    </header>
    <main id=${id}><h1 class="spoken">${current().name}</h1>${model && html`<p class="about">${model.about}</p>`}
      <${View} key=${`${id}/${model?.id}`} model=${model} studio=${studio.value} /></main>`;
}

document.addEventListener("keydown", (event) => {
  if (event.altKey && /^[1-9]$/.test(event.key)) {
    const view = offered()[Number(event.key) - 1];
    if (view) {
      event.preventDefault();
      show(view.id);
    }
  }
  const writing = /** @type {HTMLElement} */ (event.target).closest?.("input, textarea, select");
  if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const box = /** @type {HTMLElement | null} */ (document.querySelector("main textarea, main input"));
    if (box) {
      event.preventDefault();
      box.focus();
    }
  }
});

render(html`<${App} />`, /** @type {Element} */ (document.getElementById("studio")));
