// Forms and buttons that change something: they ask the HTTP API, as any program would.
//
//   <form data-api="POST /api/items/17/finish" data-then="/work" data-done="Finished">
//
// Fields are named by their place in the body (`change.days`) and say their type; what is empty is not sent, or sent as
// null where `data-empty="null"`, and is a list where numbers are listed; with `data-changes` only what was changed is sent (change.ts).
// `data-revision` is what was seen: whoever was quicker is told about. `data-once` makes a
// creation that is asked for twice happen once. A refusal stands in the form, at the field that it is about.
import { each, cookie, say, tell } from "./part";
import { fate, type Field } from "./change";
import { rereadAll } from "./live";
import { sentence, show, type Problem } from "./problem";

const LEAVING = 3000;

type Tree = { [name: string]: Tree | string };

/** Numbers are sent as they were typed: through a JavaScript number they would not be exact. */
function encoded(input: Field): string | undefined {
  const type = input.dataset["type"] ?? "text";
  if (input instanceof HTMLInputElement && input.type === "checkbox") return String(input.checked);
  const text = input.value;
  if (text === "" && type !== "numbers") return input.dataset["empty"] === "null" ? "null" : undefined;
  switch (type) {
    case "integer":
    case "number":
      return numeral(text);
    case "boolean":
      return text === "true" || text === "false" ? text : JSON.stringify(text);
    case "timestamp":
      return JSON.stringify(new Date(text).toISOString().replace(".000Z", "Z"));
    case "list":
      return JSON.stringify(text.split(/[\s,]+/).filter(Boolean));
    case "numbers":
      return `[${numbers(text).map(numeral).join(",")}]`;
    case "json":
    case "file":
      return text;
    default:
      return JSON.stringify(text);
  }
}

/** Those of a list, as people write one. A comma within a number is none between two: whoever writes 1,5 is not to get 1 and 5. */
export function numbers(text: string): string[] {
  return text.split(/[\s;]|,(?=\s|$)/).filter(Boolean);
}

/** People write +7, 007 and .5, JSON does not. */
function numeral(text: string): string {
  const digits = text.trim().replace(/^\+/, "").replace(/^(-?)0+(?=\d)/, "$1").replace(/^(-?)\./, "$10.").replace(/\.(?=$|[eE])/, "");
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(digits) ? digits : JSON.stringify(text);
}

function put(tree: Tree, path: string[], value: string): void {
  const [name, ...rest] = path;
  if (name === undefined) return;
  if (rest.length === 0) tree[name] = value;
  else {
    const below = tree[name];
    const branch: Tree = typeof below === "object" ? below : {};
    tree[name] = branch;
    put(branch, rest, value);
  }
}

function written(tree: Tree): string {
  const parts = Object.entries(tree).map(
    ([name, value]) => `${JSON.stringify(name)}:${typeof value === "string" ? value : written(value)}`,
  );
  return `{${parts.join(",")}}`;
}

/** The body that a form sends, as JSON. */
export function bodyOf(form: HTMLElement): string {
  const tree: Tree = {};
  for (const key of (form.dataset["objects"] ?? "").split(" ").filter(Boolean)) tree[key] = {};
  for (const input of form.querySelectorAll<HTMLInputElement>("[name]:not([data-aside])")) {
    if (input.disabled || (input.type === "radio" && !input.checked)) continue;
    const became = fate(input);
    const value = became === "same" ? undefined : became === "emptied" ? "null" : encoded(input);
    if (value !== undefined) put(tree, input.name.split("."), value);
  }
  return written(tree);
}

export function csrf(): string {
  return cookie("__Host-mutirao_csrf") ?? cookie("mutirao_csrf") ?? "";
}

/** Asks the API; a refusal is thrown as its problem. */
export async function ask(method: string, path: string, body?: string, more: HeadersInit = {}): Promise<unknown> {
  const headers = { "X-CSRF-Token": csrf(), ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...more };
  let response: Response;
  try {
    response = await fetch(path, { method, headers, ...(body === undefined ? {} : { body }) });
  } catch {
    throw { status: 0, code: "away", detail: say("away") } satisfies Problem;
  }
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  const answer: unknown = isJson ? await response.json() : undefined;
  if (response.ok) return answer;
  throw (answer as Problem | undefined) ?? { status: response.status, code: "unknown", detail: response.statusText };
}

function mark(form: HTMLElement, problem: Problem): void {
  const place = form.querySelector<HTMLElement>("[data-problem]") ?? document.getElementById("page-problem");
  for (const each of problem.errors ?? []) {
    const name = each.where.replace(/^body\./, "");
    form.querySelector(`[name="${CSS.escape(name)}"]`)?.setAttribute("aria-invalid", "true");
  }
  // The engine names the attribute that it refuses.
  const named = /attribute "([^"]+)"/.exec(problem.detail)?.[1];
  if (named) markField(form, named, sentence(problem.detail));
  if (!place) return;
  show(place, problem);
  form.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
}

function markField(form: HTMLElement, attribute: string, words: string): void {
  const field = form.querySelector(`[name$=".${CSS.escape(attribute)}"]`)?.closest(".field");
  field?.querySelector("[id]:is(input, select, textarea)")?.setAttribute("aria-invalid", "true");
  const line = field?.querySelector(".check-line");
  if (line) line.textContent = words;
}

function unmark(form: HTMLElement): void {
  for (const input of form.querySelectorAll("[aria-invalid=true]")) input.removeAttribute("aria-invalid");
  for (const line of form.querySelectorAll(".check-line")) line.textContent = "";
  const place = form.querySelector<HTMLElement>("[data-problem]") ?? document.getElementById("page-problem");
  if (place) place.hidden = true;
}

/** What was refused is being corrected: the refusal goes with the last field that it marked. */
function relent(form: HTMLElement, corrected: EventTarget | null): void {
  if (corrected instanceof HTMLElement && !("type" in corrected.dataset)) corrected.removeAttribute("aria-invalid"); // others are checked
  const place = form.querySelector<HTMLElement>("[data-problem]");
  if (place && !form.querySelector("[aria-invalid=true]")) place.hidden = true;
}

function onceKey(form: HTMLElement): string {
  form.dataset["key"] ??= Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16)).join("");
  return form.dataset["key"];
}

function headersOf(form: HTMLElement): Record<string, string> {
  const headers: Record<string, string> = {};
  if (form.dataset["revision"]) headers["If-Match"] = `"${form.dataset["revision"]}"`;
  if ("once" in form.dataset) headers["Idempotency-Key"] = onceKey(form);
  return headers;
}

/** Whether the page is left for another one. */
function goOn(form: HTMLElement, answer: unknown): boolean {
  form.dispatchEvent(new CustomEvent("api:done", { bubbles: true, detail: answer }));
  form.closest("dialog")?.close();
  delete form.dataset["key"];
  const then = form.dataset["then"];
  if (form.dataset["done"]) tell(form.dataset["done"]);
  if (then) {
    const known = (answer ?? {}) as Record<string, unknown>;
    const target = then.replace(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(String(known[key])));
    if (form.dataset["done"]) sessionStorage.setItem("told", form.dataset["done"]);
    location.assign(target);
  } else rereadAll();
  return Boolean(then);
}

export async function send(form: HTMLElement): Promise<void> {
  const [method = "POST", path = ""] = (form.dataset["api"] ?? "").split(" ");
  if (form.getAttribute("aria-busy") === "true") return;
  form.setAttribute("aria-busy", "true");
  unmark(form);
  let isLeft = false;
  try {
    const filled = path.replace(/\{([\w.]+)\}/g, (_, name: string) => {
      const input = form.querySelector<HTMLInputElement>(`[name="${CSS.escape(name)}"]`);
      return encodeURIComponent(input?.value ?? "");
    });
    const isEmpty = method === "DELETE" || (form.tagName !== "FORM" && !form.dataset["body"]);
    const body = isEmpty ? (method === "DELETE" ? undefined : "{}") : (form.dataset["body"] ?? bodyOf(form));
    isLeft = goOn(form, await ask(method, filled, body, headersOf(form)));
  } catch (problem) {
    if (typeof problem !== "object" || problem === null || !("detail" in problem)) throw problem;
    mark(form, problem as Problem);
  } finally {
    // Until the next page is there, another click on this one would do it once more.
    window.setTimeout(() => form.removeAttribute("aria-busy"), isLeft ? LEAVING : 0);
  }
}

each<HTMLFormElement>("form[data-api]", (form) => {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void send(form);
  });
  form.addEventListener("input", (event) => relent(form, event.target));
});
each<HTMLButtonElement>("button[data-api]", (button) => button.addEventListener("click", () => void send(button)));

const told = sessionStorage.getItem("told");
if (told) {
  sessionStorage.removeItem("told");
  tell(told);
}
