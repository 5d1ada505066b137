// What a page does with an answer of the API beyond what api.ts does for all of them.
import { each, tell } from "./part";

// There may be no next item to take: that is an answer as well.
each<HTMLElement>("[data-next]", (button) => {
  const then = button.dataset["then"] ?? "";
  button.addEventListener("api:done", (event) => {
    const isNone = (event as CustomEvent<unknown>).detail === null;
    button.dataset["then"] = isNone ? "" : then;
    if (isNone) tell(button.dataset["none"] ?? "");
  });
});

// What is parked is kept, though nobody sees it yet.
each<HTMLFormElement>("form[data-parked]", (form) => {
  form.addEventListener("api:done", (event) => {
    const { outcome } = (event as CustomEvent<{ outcome?: string }>).detail;
    if (outcome === "parked") form.dataset["done"] = form.dataset["parked"];
  });
});

each<HTMLFormElement>("form[data-clears]", (form) => form.addEventListener("api:done", () => form.reset()));

// A form that stays while the page around it is read again finishes the attempt that holds now.
document.addEventListener("htmx:afterSettle", () => {
  const now = document.querySelector<HTMLElement>("[data-attempt]")?.dataset["attempt"];
  if (now) for (const field of document.querySelectorAll<HTMLInputElement>("form[data-stay] [name=attempt]")) field.value = now;
});
