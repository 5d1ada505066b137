// Forms that hold what is there now (`data-changes`): only what somebody changes is sent, and what they empty is taken away.
//
// What was there is what the page says: it may be read again, a draft may be put in before anybody touches a field, and a
// browser fills in on its own what was there before a reload.
import { each } from "./part";

export type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** A hidden field forgets its first value. */
const held = new WeakMap<Field, string>();

each<HTMLFormElement>("form[data-changes]", (form) => {
  for (const field of form.querySelectorAll<Field>("input[type=hidden][name]")) held.set(field, field.value);
});

/** What became of an attribute; other fields of such a form are as those of any form. */
export function fate(field: Field): "same" | "emptied" | "changed" {
  if (!field.name.includes(".") || !field.closest("form[data-changes]")) return "changed";
  if (field.value === first(field)) return "same";
  return field.value === "" ? "emptied" : "changed";
}

function first(field: Field): string {
  if (field instanceof HTMLSelectElement) {
    return ([...field.options].find((option) => option.defaultSelected) ?? field.options[0])?.value ?? "";
  }
  if (field.type === "hidden") return held.get(field) ?? "";
  const probe = field.cloneNode() as HTMLInputElement | HTMLTextAreaElement;
  probe.value = field.defaultValue; // written as the browser writes it: times without seconds that are nought, line ends
  return probe.value;
}
