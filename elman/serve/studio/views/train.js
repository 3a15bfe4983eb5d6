// Train: the runs of a folder, with their curves as they grow, what they write, how their recipes differ, their logs.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {curvesPicture, SaveTexts} from "../draw.js";
import {Choice, Field, html, signal, Trouble, useEffect, useRef, useRequest, useSignal} from "../ui.js";
import uPlot from "../vendor/uplot.js";

/** @typedef {import("../types").Studio} Studio */
/** @typedef {{id: string, task: string | null, state: string, step: number, records: number, updated: number, dev: Record<string, number | string> | null, said?: string}} Run */

const EVERY = 2000;  // milliseconds between two looks at the runs that are seen

/** @param {string} id */
const path = (id) => `/v1/runs/${id.split("/").map(encodeURIComponent).join("/")}`;

/** The last scores of a run on held-out records, in a few words. @param {Run} run */
const scores = ({dev}) => Object.entries(dev ?? {}).filter(([name, value]) => typeof value === "number" && !["step", "seconds", "epoch"].includes(name))
  .slice(0, 3).map(([name, value]) => `${name.replaceAll("_", " ")} ${Number(Number(value).toPrecision(4))}`).join(", ");

/** Keys of sections as `section.key`. @param {Record<string, any>} recipe @returns {Record<string, unknown>} */
const flat = (recipe) => Object.fromEntries(Object.entries(recipe).flatMap(([name, value]) => value && typeof value === "object" && !Array.isArray(value)
  ? Object.entries(flat(value)).map(([key, inner]) => [`${name}.${key}`, inner]) : [[name, value]]));

/** @param {{studio: Studio}} props */
export function Train({studio}) {
  const list = useRequest();
  const tick = useSignal(0);
  const chosen = (address.value.runs ?? "").split(",").filter(Boolean);
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) tick.value++; }, EVERY);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => { if (studio.runs) list.run((abort) => ask("/v1/runs", undefined, abort)); }, [tick.value]);
  if (!studio.runs) return html`<p>Start the service with <code>--runs FOLDER</code> to see the runs of a folder here.</p>`;
  const runs = /** @type {Run[]} */ (list.answer.value?.runs ?? []);
  /** @param {string} name */
  const toggle = (name) => go({runs: (chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]).join(",")}, {step: true});
  return html`<${Trouble} error=${list.error.value} />
    ${studio.training && html`<${Start} started=${(/** @type {string} */ name) => { toggle(name); tick.value++; }} />`}
    ${runs.length === 0 && list.answer.value && html`<p>There are no runs in the folder yet.</p>`}
    ${runs.length > 0 && html`<div class="scroll"><table class="cells runs"><thead><tr><th scope="col">show</th><th scope="col">run</th><th scope="col">task</th><th scope="col">state</th><th scope="col" class="number">updates</th><th scope="col">held out, last</th>${studio.training && html`<th scope="col"></th>`}</tr></thead>
      <tbody>${runs.map((run) => html`<tr key=${run.id}><td><input type="checkbox" aria-label=${`show ${run.id}`} checked=${chosen.includes(run.id)} onChange=${() => toggle(run.id)} /></td>
        <th scope="row">${run.id}</th><td>${run.task}</td><td>${run.state}${run.said && html`<p class="trouble">${run.said}</p>`}</td><td class="number">${run.step.toLocaleString("en")}</td><td>${scores(run)}</td>
        ${studio.training && html`<td><${Steer} run=${run} done=${() => { tick.value++; }} /></td>`}</tr>`)}</tbody></table></div>`}
    ${chosen.length > 0 && html`<${Curves} chosen=${runs.filter(({id, task}) => task && chosen.includes(id))} />`}`;
}

/** @param {{run: Run, done: () => void}} props */
function Steer({run, done}) {
  const {error, busy, run: send} = useRequest();
  /** @param {string} what */
  const tell = (what) => send(async (abort) => { await ask(`${path(run.id)}/${what}`, {}, abort); done(); });
  return html`${run.state === "running" && html`<button type="button" class="quiet" disabled=${busy.value} onClick=${() => tell("stop")}>Stop</button>`}
    ${(run.state === "stopped" || (run.state === "failed" && run.task)) && html`<button type="button" class="quiet" disabled=${busy.value} onClick=${() => tell("resume")}>Resume</button>`}<${Trouble} error=${error.value} />`;
}

/** The logs that are known, by run: what is new is asked for, not all of it again. @type {Map<string, any[]>} */
const logs = new Map();

/** @param {string} name @param {AbortSignal} abort @returns {Promise<any[]>} */
async function logOf(name, abort) {
  const known = logs.get(name) ?? [];
  const {records, next} = await ask(`${path(name)}/log?after=${known.length}`, undefined, abort);
  const again = known.length > 0 && (next < known.length || records[0]?.step < known.at(-1).step);  // a run that was resumed has gone back
  if (again) {
    logs.delete(name);
    return logOf(name, abort);
  }
  logs.set(name, [...known, ...records]);
  return records.length ? logOf(name, abort) : known;
}

/** @param {{chosen: Run[]}} props */
function Curves({chosen}) {
  const {answer, error, run} = useRequest();
  useEffect(() => {
    run((abort) => Promise.all(chosen.map(async ({id}) => ({...await ask(path(id), undefined, abort), log: await logOf(id, abort)}))));
  }, [JSON.stringify(chosen.map(({id, state, records, updated}) => [id, state, records, updated]))]);
  const runs = /** @type {any[]} */ (answer.value ?? []);
  const figures = [...new Set(runs.flatMap(({log}) => log.filter((/** @type {any} */ r) => r.kind !== "sample").flatMap((/** @type {any} */ record) => Object.entries(record).filter(([key, value]) => typeof value === "number" && key !== "step").map(([key]) => `${record.kind} ${key}`))))];
  const seen = figures.includes(address.value.figure) ? address.value.figure : figures.find((name) => name.startsWith("dev ")) ?? figures[0];
  return html`<${Trouble} error=${error.value} />
    ${figures.length > 0 && html`<div class="row"><${Choice} name="figure" value=${seen} choices=${figures} change=${(/** @type {string} */ value) => go({figure: value})} /></div>
      <${Plot} runs=${runs} figure=${seen} />`}
    ${runs.map((one) => html`<${Run} key=${one.id} run=${one} others=${runs} />`)}`;
}

/** The colours that curves have on pages of `elman explain`, in the light or in the dark. */
function colours() {
  const probe = document.createElement("i");
  document.body.append(probe);
  const found = Array.from({length: 8}, (_, number) => {
    probe.className = `n${number}`;
    return getComputedStyle(probe).getPropertyValue("--name");
  });
  probe.remove();
  return found;
}

const DARK = matchMedia("(prefers-color-scheme: dark)");
const dark = signal(DARK.matches);
DARK.addEventListener("change", () => { dark.value = DARK.matches; });

/** @param {{runs: any[], figure: string}} props */
function Plot({runs, figure}) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | null} */ (null));
  const [kind, ...rest] = figure.split(" "), key = rest.join(" ");
  const curves = runs.map(({log}) => log.filter((/** @type {any} */ r) => r.kind === kind && typeof r[key] === "number"));
  const steps = [...new Set(curves.flat().map(({step}) => step))].sort((a, b) => a - b);
  const data = [steps, ...curves.map((curve) => {
    const by = new Map(curve.map((/** @type {any} */ r) => [r.step, r[key]]));
    return steps.map((step) => by.get(step));
  })];
  const shape = `${figure} ${runs.map(({id}) => id).join()} ${dark.value}`;
  useEffect(() => {
    const box = /** @type {HTMLElement} */ (place.current), soft = getComputedStyle(document.body).color, own = colours();
    const axis = {stroke: soft, grid: {stroke: "#8884", width: 1}};
    const size = () => ({width: Math.min(box.clientWidth, 1100), height: 340});
    plot.current = new uPlot({...size(), title: figure, scales: {x: {time: false}}, axes: [{...axis, label: "updates"}, axis],
      series: [{label: "updates"}, ...runs.map(({id}, number) => ({label: id, stroke: own[number % own.length], width: 2, spanGaps: true}))]}, data, box);
    const resized = () => plot.current?.setSize(size());
    addEventListener("resize", resized);
    return () => {
      removeEventListener("resize", resized);
      plot.current?.destroy();
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [JSON.stringify(data.map((row) => row.length)), steps.at(-1)]);
  const numbers = Object.fromEntries(runs.map(({id}, number) => [id, curves[number]]));
  return html`<div class="curves" ref=${place}></div><${SaveTexts} svg=${() => curvesPicture(/** @type {uPlot} */ (plot.current), figure)} data=${numbers} name=${figure} />`;
}

/** @param {{run: any, others: any[]}} props */
function Run({run, others}) {
  const samples = run.log.filter((/** @type {any} */ record) => record.kind === "sample");
  const recipe = /** @type {[string, unknown][]} */ (Object.entries(flat(run.recipe)));
  const differs = others.length > 1 ? recipe.filter(([key, value]) => others.some(({recipe: other}) => JSON.stringify(flat(other)[key]) !== JSON.stringify(value))) : recipe;
  return html`<details><summary>${run.id}: recipe, samples, log</summary>
    <h3>${others.length > 1 ? "Where its recipe differs" : "Recipe"}</h3>
    <div class="scroll"><table class="cells"><tbody>${differs.map(([key, value]) => html`<tr><th scope="row">${key}</th><td>${JSON.stringify(value)}</td></tr>`)}</tbody></table></div>
    ${samples.length > 0 && html`<h3>What it wrote</h3>${samples.slice(-5).reverse().map((/** @type {any} */ record) => html`<p class="quietly">after ${record.step.toLocaleString("en")} updates</p><pre class="log">${record.text}</pre>`)}`}
    <h3>Log</h3><pre class="log">${run.log.slice(-200).map((/** @type {any} */ record) => JSON.stringify(record)).join("\n")}</pre></details>`;
}

const form = signal({task: "classify", name: "", recipe: "", train: "", settings: ""});

/** @param {{started: (name: string) => void}} props */
function Start({started}) {
  const {answer, run: look} = useRequest();
  const {error, busy, run} = useRequest();
  useEffect(() => { look((abort) => ask("/v1/training", undefined, abort)); }, []);
  const offers = answer.value;
  /** @param {string} key */
  const set = (key) => (/** @type {any} */ e) => { form.value = {...form.value, [key]: e.target?.value ?? e}; };
  /** @param {Event} event */
  const start = (event) => {
    event.preventDefault();
    const {task, name, recipe, train, settings} = form.value;
    run(async (abort) => {
      await ask("/v1/runs", {task, name, ...(recipe ? {recipe} : {}), ...(train ? {train: [train]} : {}), settings: settings.split("\n").map((line) => line.trim()).filter(Boolean)}, abort);
      started(name);
    });
  };
  if (!offers) return null;
  return html`<details><summary>Start a run</summary><form class="controls" onSubmit=${start}>
    <${Choice} name="task" value=${form.value.task} choices=${offers.tasks} change=${set("task")} />
    <${Choice} name="recipe" value=${form.value.recipe} choices=${[["", "none"], ...offers.recipes.filter((/** @type {any} */ one) => one.task === form.value.task).map((/** @type {any} */ one) => one.name)]} change=${set("recipe")} />
    <${Choice} name="training file" value=${form.value.train} choices=${[["", "the recipe's"], ...offers.files]} change=${set("train")} />
    <${Field} name="name of the run"><input required pattern="[A-Za-z0-9._\\-]+" value=${form.value.name} onInput=${set("name")} /><//>
    <${Field} name="settings" hint="a line each: train.epochs=3"><textarea value=${form.value.settings} onInput=${set("settings")}></textarea><//>
    <button disabled=${busy.value}>Train</button><${Trouble} error=${error.value} /></form></details>`;
}
