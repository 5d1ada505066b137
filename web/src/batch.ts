// Choosing several instances: how many are chosen stands on the button that does something with them.
import { each } from "./part";

each<HTMLFormElement>("form[data-choosing]", (form) => {
  const boxes = (): HTMLInputElement[] => [...form.querySelectorAll<HTMLInputElement>("input[name=instance]")];
  const show = (): void => {
    const chosen = boxes().filter((box) => box.checked).length;
    const button = form.querySelector<HTMLButtonElement>("[data-to-chosen]");
    const count = form.querySelector("[data-chosen-count]");
    if (button) button.disabled = chosen === 0;
    if (count) count.textContent = chosen ? `(${chosen})` : "";
  };
  form.addEventListener("change", (event) => {
    if (event.target instanceof HTMLInputElement && "chooseAll" in event.target.dataset) {
      for (const box of boxes()) box.checked = event.target.checked;
    }
    show();
  });
  // "To all that fit" means the filter, whatever is chosen.
  form.addEventListener("submit", (event) => {
    const isForAll = event.submitter instanceof HTMLButtonElement && event.submitter.name === "all";
    if (!isForAll) return;
    for (const box of boxes()) box.checked = false;
    show();
  });
  document.addEventListener("htmx:afterSettle", show);
  show();
});

// A choice that the page depends on is asked for as soon as it is made.
each<HTMLSelectElement>("select[data-asks]", (select) => {
  select.addEventListener("change", () => select.form?.requestSubmit());
});
