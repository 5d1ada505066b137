// Several choices that are sent as one list: boxes that are checked, and names that are typed with commas between them.
//
//   <fieldset data-gathers><input type="hidden" name="roles" data-type="json"> <input type="checkbox" value="clerk"> …
//
// Where nothing is chosen, nothing is sent; with `data-even-none`, an empty list. A box with `data-itself` stands for what
// is being named in the same form.
import { each } from "./part";

function chosen(group: HTMLElement, named: string | undefined): string[] {
  const inputs = [...group.querySelectorAll<HTMLInputElement>("input:not([name])")];
  return inputs.flatMap((input) => {
    if (input.type === "checkbox") return input.checked ? [("itself" in input.dataset && named) || input.value] : [];
    return input.value
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean);
  });
}

each<HTMLElement>("[data-gathers]", (group) => {
  const held = group.querySelector<HTMLInputElement>("input[type=hidden]");
  const form = group.closest("form");
  if (!held || !form) return;
  const gather = (): void => {
    const values = chosen(group, form.querySelector<HTMLInputElement>("[data-names-itself]")?.value.trim());
    held.value = values.length || "evenNone" in group.dataset ? JSON.stringify(values) : "";
  };
  form.addEventListener("input", gather);
  form.addEventListener("reset", () => window.setTimeout(gather)); // a hidden field keeps its value, boxes do not
  gather();
});
