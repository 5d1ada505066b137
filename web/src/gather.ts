// Boxes that make one list: `data-gathers` is around them and the hidden field that is sent. A box with `data-itself`
// stands for what is being named in the same form; with `data-none` on the group, an empty list is not sent.
import { each } from "./part";

each<HTMLElement>("[data-gathers]", (group) => {
  const held = group.querySelector<HTMLInputElement>("input[type=hidden]");
  const form = group.closest("form");
  if (!held || !form) return;
  const gather = (): void => {
    const named = form.querySelector<HTMLInputElement>("[data-names-itself]")?.value.trim();
    const boxes = [...group.querySelectorAll<HTMLInputElement>("input[type=checkbox]")].filter((box) => box.checked);
    const values = boxes.map((box) => ("itself" in box.dataset && named) || box.value);
    held.value = values.length === 0 && "none" in group.dataset ? "" : JSON.stringify(values);
  };
  form.addEventListener("input", gather);
  form.addEventListener("change", gather);
  gather();
});
