// Several choices that are sent as one list: boxes that are checked, and names that are typed with commas between them.
//
//   <fieldset data-collects><input type="hidden" name="roles" data-type="json"> <input type="checkbox" value="clerk"> …
//
// Where nothing is chosen, nothing is sent.
import { each } from "./part";

function chosen(part: HTMLElement): string[] {
  const inputs = [...part.querySelectorAll<HTMLInputElement>("input:not([name])")];
  return inputs.flatMap((input) => {
    if (input.type === "checkbox") return input.checked ? [input.value] : [];
    return input.value
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean);
  });
}

each<HTMLElement>("[data-collects]", (part) => {
  part.addEventListener("input", () => {
    const list = part.querySelector<HTMLInputElement>("input[name]");
    const values = chosen(part);
    if (list) list.value = values.length ? JSON.stringify(values) : "";
  });
});
