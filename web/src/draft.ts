// Drafts: what was typed into a form with `data-draft` stays in this browser until it is sent, whatever becomes of the tab.
import { each, say } from "./part";

const AFTER = 30 * 24 * 60 * 60 * 1000;
const PREFIX = "draft/";
type Draft = { at: number; values: Record<string, string> };
type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** What people fill in: files are held by hidden fields, but an attempt is none of theirs. */
function fields(form: HTMLElement): Field[] {
  const all = [...form.querySelectorAll<Field>("[name]")];
  return all.filter((each) => each.type !== "password" && (each.type !== "hidden" || each.dataset["type"] === "file"));
}

function valueOf(field: Field): string {
  return field instanceof HTMLInputElement && field.type === "checkbox" ? String(field.checked) : field.value;
}

function read(key: string): Draft | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "null") as Draft | null;
    return kept && typeof kept.at === "number" && typeof kept.values === "object" ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Answers whether there was room: a browser keeps some megabytes. */
function save(key: string, form: HTMLElement): boolean {
  const values = Object.fromEntries(fields(form).map((field) => [field.name, valueOf(field)]));
  try {
    localStorage.setItem(key, JSON.stringify({ at: Date.now(), values } satisfies Draft));
    return true;
  } catch {
    return false;
  }
}

/** Answers whether the form is not as it was before. */
function restore(key: string, form: HTMLElement): boolean {
  const values = read(key)?.values ?? {};
  let isChanged = false;
  for (const field of fields(form)) {
    const value = values[field.name];
    if (typeof value !== "string" || value === valueOf(field)) continue;
    isChanged = true;
    if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = value === "true";
    else field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  return isChanged;
}

each<HTMLFormElement>("form[data-draft]", (form) => {
  const key = `${PREFIX}${document.body.dataset["person"]}/${form.dataset["draft"]}`;
  const note = form.querySelector<HTMLElement>("[data-draft-note]");
  const forget = form.querySelector<HTMLElement>("[data-draft-forget]");
  const show = (what: string): void => {
    if (note) note.textContent = what && say(what);
    if (forget) forget.hidden = !what;
  };
  const keep = (): void => show(save(key, form) ? "draft-kept" : "draft-too-large");
  const drop = (): void => {
    localStorage.removeItem(key);
    show("");
  };
  const before = new Map(fields(form).map((field) => [field, valueOf(field)]));
  if (restore(key, form)) show("draft-restored");
  form.addEventListener("input", (event) => {
    if (event.isTrusted) keep();
  });
  form.addEventListener("draft:save", keep);
  form.addEventListener("api:done", drop);
  forget?.addEventListener("click", () => {
    form.reset();
    // A hidden field is not reset: what it holds is its default.
    for (const [field, value] of before) if (field.type === "hidden") field.value = value;
    for (const field of before.keys()) field.dispatchEvent(new Event("input", { bubbles: true }));
    drop();
    form.querySelector<HTMLElement>("input:not([type=hidden]), select, textarea")?.focus();
  });
});

for (const key of Object.keys(localStorage).filter((each) => each.startsWith(PREFIX))) {
  if (Date.now() - (read(key)?.at ?? 0) > AFTER) localStorage.removeItem(key);
}
