// A form that would write nothing (`data-sure`): it is sent when that was asked for twice; with `data-sure="needed"`, never.
import { bodyOf } from "./api";
import { say } from "./part";

function isEmpty(form: HTMLElement): boolean {
  const { change } = JSON.parse(bodyOf(form)) as { change?: Record<string, unknown> };
  return Object.keys(change ?? {}).length === 0;
}

// Before the form's own handler: what is held back is not sent.
document.addEventListener(
  "submit",
  (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || !("sure" in form.dataset) || "asked" in form.dataset || !isEmpty(form)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const isNeeded = form.dataset["sure"] === "needed";
    if (!isNeeded) form.dataset["asked"] = "";
    const place = form.querySelector<HTMLElement>("[data-problem]");
    if (!place) return;
    place.textContent = say(isNeeded ? "nothing-changed" : "nothing-filled");
    place.hidden = false;
  },
  true,
);
document.addEventListener("input", (event) => delete (event.target as Element).closest("form")?.dataset["asked"]);
