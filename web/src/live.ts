// Live pages: the server hints at what has changed, and whatever shows it is read again. No data comes by the stream.
//
// An element says `hx-trigger="reread-worklist from:body"`. A tab that nobody sees holds no connection: a browser has
// six for one server, and a person may have more tabs than that. What to hear of is said by the page, or by a part of it
// that is read again with other things in it.

const GATHERED_FOR = 200; // milliseconds: what moves together is read together

let stream: EventSource | undefined;
let heard: string | undefined;
let timer: number | undefined;
const pending = new Set<string>();

function hear(event: MessageEvent<string>): void {
  const { reread } = JSON.parse(event.data) as { reread: string[] };
  // The first hint says everything: what has changed since the page was made, before anybody listened, is not missed.
  for (const what of reread) pending.add(what.split("/")[0] ?? what);
  timer ??= window.setTimeout(pass, GATHERED_FOR);
}

function pass(): void {
  timer = undefined;
  for (const what of pending) reread(what);
  pending.clear();
}

/** Has read again what shows this. */
export function reread(what: string): void {
  document.body.dispatchEvent(new CustomEvent(`reread-${what}`, { bubbles: true }));
}

export function rereadAll(): void {
  for (const what of ["worklist", "messages", "instance", "instances", "page"]) reread(what);
}

function listen(): void {
  const path = [...document.querySelectorAll<HTMLElement>("[data-events]")].at(-1)?.dataset["events"];
  if (!path || document.hidden || (stream && path === heard)) return;
  rest();
  heard = path;
  stream = new EventSource(path);
  stream.addEventListener("hint", hear as EventListener);
  stream.addEventListener("open", () => document.body.classList.remove("is-away"));
  stream.addEventListener("error", () => document.body.classList.add("is-away"));
}

function rest(): void {
  stream?.close();
  stream = undefined;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) rest();
  listen();
});
document.addEventListener("htmx:afterSettle", listen);
window.addEventListener("pagehide", rest);
window.addEventListener("pageshow", listen); // also for whoever comes back to it
