// The service, as the views call it: what is refused is an error with one sentence. Where the service has a key, the browser has
// asked for it before it showed the page, and sends it along.

/** What cannot be done, in a sentence for whoever sits before the page. */
export class Refused extends Error {
  /** @param {string} message @param {number} [status] */
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string} path
 * @param {{body?: unknown, method?: string, signal?: AbortSignal}} [how]
 */
async function request(path, {body, method, signal} = {}) {
  const headers = /** @type {Record<string, string>} */ (body === undefined ? {} : {"Content-Type": "application/json"});
  /** @type {Response} */
  let answer;
  try {
    answer = await fetch(path, {
      method: method ?? (body === undefined ? "GET" : "POST"), headers, signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (/** @type {Error} */ (error).name === "AbortError") throw error;
    throw new Refused("the service does not answer: is it still running?");
  }
  if (!answer.ok) throw new Refused(await sentence(answer), answer.status);
  return answer;
}

/** @param {Response} answer */
async function sentence(answer) {
  try {
    return (await answer.json()).error.message;
  } catch {
    return `the service answered ${answer.status}`;
  }
}

/**
 * What the service says, as JSON.
 * @param {string} path @param {unknown} [body] @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function ask(path, body, signal) {
  return (await request(path, {body, signal})).json();
}

/**
 * What the service says, as a file.
 * @param {string} path @param {unknown} [body]
 */
export async function fetchFile(path, body) {
  return (await request(path, {body})).blob();
}

/**
 * Events as the service sends them, until the last.
 * @param {string} path @param {unknown} body @param {AbortSignal} signal
 * @returns {AsyncGenerator<any>}
 */
export async function* events(path, body, signal) {
  const answer = await request(path, {body, signal});
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    rest += decoder.decode(value, {stream: !done});
    const parts = rest.split(/\r?\n\r?\n/);
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const data = part.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart()).join("\n");
      if (!data) continue;
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new Refused(event.error.message);
      yield event;
    }
    if (done) return;
  }
}
