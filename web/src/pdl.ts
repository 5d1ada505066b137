// Writing a flow as text: numbered lines, checked by the API a moment after the last key, and what is wrong shown at its place.
//
//   <form data-api="POST /api/pdl" data-pdl> … <textarea name="text"> … <ol data-findings>
//
// Nothing is put in place by a check. It tells as well which flows there are in the text: whoever has given one another name
// is told what becomes of which. What was put in place is told on its own page, each flow with its version.
import { each, say, tell } from "./part";
import { ask } from "./api";
import { wordsFor, type Problem } from "./problem";

const PAUSE = 350;
const MOST_FINDINGS = 200;

interface Finding {
  message: string;
  line: number;
  column: number;
  is_warning: boolean;
}
interface Defined {
  flow: string;
  is_new: boolean;
}
interface Editor {
  text: HTMLTextAreaElement;
  gutter: HTMLElement;
  lines: HTMLElement;
  findings: HTMLOListElement;
  status: HTMLElement;
  others: HTMLElement;
  own: string | undefined;
  name: HTMLInputElement;
}

function editorOf(form: HTMLElement): Editor {
  const find = <E extends HTMLElement>(selector: string): E => {
    const found = form.querySelector<E>(selector);
    if (!found) throw new Error(`the form has no ${selector}`);
    return found;
  };
  return {
    text: find("textarea[name=text]"),
    gutter: find(".gutter"),
    lines: find(".lines"),
    findings: find("[data-findings]"),
    status: find("#pdl-status"),
    others: find("[data-others]"),
    own: form.dataset["flow"],
    name: find("input[name=name]"),
  };
}

/** The numbers beside the text and the colour behind its wrong lines; both go along when it is scrolled. */
function number({ text, gutter, lines }: Editor, found: Finding[]): void {
  const wrong = new Map(found.map((each) => [each.line, each.is_warning ? "is-hint" : "is-wrong"]));
  const count = text.value.split("\n").length;
  const rows = (make: (line: number) => string): HTMLElement[] =>
    Array.from({ length: count }, (_, index) => {
      const row = document.createElement("div");
      row.className = wrong.get(index + 1) ?? "";
      row.textContent = make(index + 1);
      return row;
    });
  gutter.replaceChildren(...rows(String));
  lines.replaceChildren(...rows(() => ""));
  follow({ text, gutter, lines });
}

function follow({ text, gutter, lines }: Pick<Editor, "text" | "gutter" | "lines">): void {
  gutter.scrollTop = text.scrollTop;
  lines.scrollTop = text.scrollTop;
}

function goTo(text: HTMLTextAreaElement, { line, column }: Finding): void {
  const before = text.value.split("\n").slice(0, line - 1);
  const start = before.reduce((sum, each) => sum + each.length + 1, 0) + Math.max(0, column - 1);
  const word = /^\w+/.exec(text.value.slice(start))?.[0].length ?? 1;
  text.focus();
  text.setSelectionRange(start, Math.min(start + word, text.value.length));
  const height = text.scrollHeight / Math.max(1, text.value.split("\n").length);
  text.scrollTop = Math.max(0, height * (line - 1) - text.clientHeight / 2);
}

function list(editor: Editor, found: Finding[]): void {
  const items = found.slice(0, MOST_FINDINGS).map((finding) => {
    const place = document.createElement("button");
    place.type = "button";
    place.className = "quiet small";
    place.textContent = say("pdl-place", { line: String(finding.line), column: String(finding.column) });
    place.addEventListener("click", () => goTo(editor.text, finding));
    const item = document.createElement("li");
    item.className = finding.is_warning ? "is-hint" : "is-wrong";
    item.append(place, ` ${finding.is_warning ? `(${say("pdl-hint")}) ` : ""}${finding.message}`);
    return item;
  });
  editor.findings.replaceChildren(...items);
  editor.findings.hidden = items.length === 0;
}

function show(editor: Editor, found: Finding[]): void {
  number(editor, found);
  list(editor, found);
  const mistakes = found.filter((each) => !each.is_warning).length;
  editor.status.textContent = mistakes ? say("pdl-wrong", { count: String(mistakes) }) : say("pdl-right");
  editor.status.className = `pdl-status ${mistakes ? "is-wrong" : "is-right"}`;
}

/** What putting it in place does to other flows than the one that this page is about. */
function warn({ others, own }: Editor, flows: Defined[]): void {
  const isGone = own !== undefined && !flows.some((each) => each.flow === own);
  const lines = flows.flatMap(({ flow, is_new }) => {
    if (flow === own) return [];
    if (is_new) return isGone ? [say("pdl-renamed", { flow, own })] : [];
    return [say("pdl-known", { flow })];
  });
  others.textContent = lines.join(" ");
  others.hidden = lines.length === 0;
}

function bodyFor({ text, name }: Editor): string {
  return JSON.stringify({ text: text.value, name: name.value });
}

async function check(editor: Editor): Promise<void> {
  const asked = editor.text.value;
  if (!asked.trim()) {
    show(editor, []);
    return warn(editor, []);
  }
  try {
    const answer = (await ask("POST", "/api/pdl/check", bodyFor(editor))) as { findings: Finding[]; flows: Defined[] };
    // Somebody who types on is answered for what stands there then.
    if (asked !== editor.text.value) return;
    show(editor, answer.findings);
    warn(editor, answer.flows);
  } catch (problem) {
    editor.status.textContent = wordsFor(problem as Problem);
  }
}

async function layOut(editor: Editor): Promise<void> {
  try {
    const answer = (await ask("POST", "/api/pdl/format", bodyFor(editor))) as { text: string };
    fill(editor, answer.text);
  } catch (problem) {
    const { findings } = problem as Problem & { findings?: Finding[] };
    if (findings) show(editor, findings);
    else tell(wordsFor(problem as Problem));
  }
}

function fill({ text }: Editor, content: string): void {
  text.setRangeText(content, 0, text.value.length, "start");
  text.dispatchEvent(new Event("input", { bubbles: true }));
  text.form?.dispatchEvent(new CustomEvent("draft:save"));
}

async function take(editor: Editor, file: File | undefined): Promise<void> {
  if (!file) return;
  editor.name.value = file.name;
  fill(editor, await file.text());
}

/** A file may be dropped onto the text, or chosen. */
function takeFiles(form: HTMLElement, editor: Editor): void {
  const chooser = form.querySelector<HTMLInputElement>("input[type=file]");
  chooser?.addEventListener("change", () => void take(editor, chooser.files?.[0]));
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("is-over");
  });
  for (const type of ["dragleave", "drop"]) form.addEventListener(type, () => form.classList.remove("is-over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    void take(editor, event.dataTransfer?.files[0]);
  });
}

/** To the page of the flow, or to all of them, where it is told what was put in place. A text may define no flow at all. */
function goOn(form: HTMLElement, flows: Record<string, number>): void {
  const put = Object.entries(flows);
  const [only] = put;
  form.dataset["done"] = put.map(([flow, version]) => say("pdl-put", { flow, version: String(version) })).join(" ") || say("pdl-put-all");
  if (only) form.dataset["then"] = put.length === 1 ? `/flows/${encodeURIComponent(only[0])}` : "/flows";
}

each<HTMLFormElement>("form[data-pdl]", (form) => {
  const editor = editorOf(form);
  let timer: number | undefined;
  editor.text.addEventListener("input", () => {
    number(editor, []);
    form.querySelector("[data-problem]")?.setAttribute("hidden", ""); // it was about another text
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void check(editor), PAUSE);
  });
  editor.text.addEventListener("scroll", () => follow(editor));
  form.querySelector("[data-formats]")?.addEventListener("click", () => void layOut(editor));
  form.addEventListener("api:done", (event) => goOn(form, (event as CustomEvent<{ flows: Record<string, number> }>).detail.flows));
  takeFiles(form, editor);
  number(editor, []);
  void check(editor);
});
