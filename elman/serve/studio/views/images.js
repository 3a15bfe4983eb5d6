// Images that are chosen, dropped or pasted: as they are shown, and as they are sent.

import {Refused} from "../api.js";

/** @typedef {{url: string, content: string, width: number, height: number, smaller: boolean}} Opened */

const SIDES = [2048, 1024, 512, 256];  // pixels to which an image that is too large is brought, until it fits
const REST = 25_000;  // bytes of a request beside the image: a question and options

/**
 * An image as it is shown and sent; one that is larger than a request may be is made smaller, which a model does in any case.
 * @param {File} file @param {number} most bytes of a request
 * @returns {Promise<Opened>}
 */
export async function opened(file, most) {
  let url = await encoded(file), smaller = false;
  const image = await decoded(url);
  for (const side of SIDES) {
    if (url.length <= most - REST) break;
    [url, smaller] = [scaled(image, side), true];
  }
  return {url, content: url.split(",")[1], width: image.naturalWidth || 1, height: image.naturalHeight || 1, smaller};
}

/** @param {Blob} file @returns {Promise<string>} */
const encoded = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result));
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

/** @param {string} url */
async function decoded(url) {
  const image = new Image();
  image.src = url;
  try {
    await image.decode();
  } catch {
    throw new Refused("this is no image that the browser can show: give a JPEG, PNG, WebP, GIF or BMP");
  }
  return image;
}

/** @param {HTMLImageElement} image @param {number} side */
function scaled(image, side) {
  const scale = Math.min(1, side / Math.max(image.naturalWidth, image.naturalHeight));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(4, Math.round(scale * image.naturalWidth));
  canvas.height = Math.max(4, Math.round(scale * image.naturalHeight));
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = "#ffffff";  // what is transparent stands on white, as the service has it
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.9);
}
