// Drafts: what was typed into a form with `data-draft` stays in this browser until it is sent, whatever becomes of the tab.
import { each, say } from "./part";

const AFTER = 30 * 24 * 60 * 60 * 1000;
type Draft = { at: number; values: Record<string, string> };
type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

function fields(form: HTMLElement): Field[] {
  return [...form.querySelectorAll<Field>("[name]")].filter((each) => each.type !== "password");
}

function valueOf(field: Field): string {
  return field instanceof HTMLInputElement && field.type === "checkbox" ? String(field.checked) : field.value;
}

function save(key: string, form: HTMLElement): void {
  const values = Object.fromEntries(fields(form).map((field) => [field.name, valueOf(field)]));
  localStorage.setItem(key, JSON.stringify({ at: Date.now(), values } satisfies Draft));
}

function restore(key: string, form: HTMLElement): boolean {
  const kept = localStorage.getItem(key);
  if (!kept) return false;
  const { values } = JSON.parse(kept) as Draft;
  for (const field of fields(form)) {
    const value = values[field.name];
    if (value === undefined) continue;
    if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = value === "true";
    else field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  return true;
}

each<HTMLFormElement>("form[data-draft]", (form) => {
  const key = `draft/${document.body.dataset["person"]}/${form.dataset["draft"]}`;
  const note = form.querySelector<HTMLElement>("[data-draft-note]");
  if (restore(key, form) && note) note.textContent = say("draft-restored");
  form.addEventListener("input", (event) => {
    if (!event.isTrusted) return;
    save(key, form);
    if (note) note.textContent = say("draft-kept");
  });
  form.addEventListener("draft:save", () => save(key, form));
  form.addEventListener("api:done", () => localStorage.removeItem(key));
});

for (const key of Object.keys(localStorage).filter((each) => each.startsWith("draft/"))) {
  const { at } = JSON.parse(localStorage.getItem(key) ?? '{"at":0}') as Draft;
  if (Date.now() - at > AFTER) localStorage.removeItem(key);
}
