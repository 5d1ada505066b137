// Forms that hold what is there now (`data-changes`): only what somebody changes is sent, and what they empty is taken away.
import { each } from "./part";

type Input = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

each<HTMLFormElement>("form[data-changes]", (form) => {
  const before = new Map<Input, string>();
  const inputs = (): Input[] => [...form.querySelectorAll<Input>('[name^="change."]')];
  // While it is closed the page is read again, and so are these: what counts is what was there when somebody began.
  form.addEventListener("focusin", () => {
    if (before.size === 0) for (const input of inputs()) before.set(input, input.value);
  });
  form.closest("dialog")?.addEventListener("close", () => before.clear());
  form.addEventListener(
    "submit",
    () => {
      const same = inputs().filter((input) => input.value === (before.get(input) ?? ""));
      for (const input of inputs()) input.dataset["empty"] = "null";
      for (const input of same) input.disabled = true;
      // The body is made while the event is handled.
      window.setTimeout(() => {
        for (const input of same) input.disabled = false;
      });
    },
    { capture: true },
  );
});
