// Pictures: what a model says of an image, or answers to a question about it.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {Field, html, percent, Trouble, useRequest, useSignal} from "../ui.js";

/** @typedef {import("../types").Model} Model */

/** @param {Blob} file @returns {Promise<string>} */
const encoded = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result));
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

/** @param {{model: Model}} props */
export function Pictures({model}) {
  const image = useSignal(""), over = useSignal(false), question = address.value.question ?? "";
  const {answer, error, busy, run} = useRequest();
  const asks = model.task === "answer";
  const record = {image: image.value.split(",")[1] ?? "", ...(asks ? {question} : {})};
  const body = {model: model.id, records: [record]};
  const look = () => {
    if (!image.value || (asks && !question.trim())) return;
    run(async (signal) => (await ask("/v1/predict", body, signal)).results[0]);
  };
  /** @param {DragEvent | Event} event */
  async function take(event) {
    event.preventDefault();
    over.value = false;
    const files = /** @type {DragEvent} */ (event).dataTransfer?.files ?? /** @type {HTMLInputElement} */ (event.target).files;
    if (!files?.[0]) return;
    image.value = await encoded(files[0]);
    answer.value = null;
    look();
  }
  return html`<form class="sides" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); look(); }}>
    <div><div class=${`drop ${over.value ? "over" : ""}`} onDragOver=${(/** @type {Event} */ e) => { e.preventDefault(); over.value = true; }} onDragLeave=${() => { over.value = false; }} onDrop=${take}>
        ${image.value ? html`<img src=${image.value} alt="the image that the model looks at" />` : html`<p>Drop an image here</p>`}
        <${Field} name="image"><input type="file" accept="image/*" onChange=${take} /><//></div>
      ${asks && html`<${Field} name="Question"><input value=${question} onInput=${(/** @type {any} */ e) => go({question: e.target.value})} /><//>`}
      <div class="row"><button disabled=${!image.value || busy.value}>${asks ? "Answer" : "Describe"}</button></div></div>
    <div aria-live="polite"><${Trouble} error=${error.value} />
      ${answer.value && html`<p class="text">${answer.value.caption ?? answer.value.answer ?? answer.value.label}</p>
        ${answer.value.probability !== undefined && html`<p class="quietly">${percent(answer.value.probability)}</p>`}
`}</div></form>`;
}
