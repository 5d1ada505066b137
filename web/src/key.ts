// The keyboard: j and k go through a list, and letters press the button that says so (`data-key="t"`).
//
// Letters do nothing while somebody types (Escape ends that), nor when they are switched off (in the dialog that `?` opens).
import { each, tell, say } from "./part";

const OFF = "keys-off";
const PRESSED = /^(checkbox|radio|button|submit|reset|file)$/;

/** Where in the list somebody was: when that row goes, the next one stands there. */
let place = -1;

function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !PRESSED.test(target.type);
  return target instanceof HTMLElement && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName));
}

function rows(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("[data-rows] [data-row]")];
}

function step(by: number): void {
  const all = rows();
  const here = all.findIndex((row) => row.contains(document.activeElement));
  const wanted = here >= 0 ? here + by : place >= 0 ? place : by > 0 ? 0 : all.length - 1;
  const next = all[Math.min(all.length - 1, Math.max(0, wanted))];
  const target = next?.querySelector<HTMLElement>("a[href]") ?? next;
  target?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("focusin", (event) => {
  const row = (event.target as Element).closest<HTMLElement>("[data-row]");
  if (row) place = rows().indexOf(row);
});

/** The row that has the focus is meant before the page. */
function buttonFor(key: string): HTMLElement | undefined {
  const fitting = `[data-key~="${CSS.escape(key)}"]`;
  const row = document.activeElement?.closest("[data-row]");
  const outside = [...document.querySelectorAll<HTMLElement>(`main ${fitting}, ${fitting}`)].find((each) => !each.closest("[data-row]"));
  return row?.querySelector<HTMLElement>(fitting) ?? outside;
}

/** A form is filled in from its first field on; one without fields is sent by its button. */
function enter(form: HTMLElement): void {
  const first = form.querySelector<HTMLElement>(
    "input:not([type=hidden]):not([disabled]), select, textarea, button:not([type=button])",
  );
  first?.focus();
  first?.closest(".field")?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
    const near = (event.target as HTMLElement).closest("form") ?? document.querySelector<HTMLFormElement>("main form[data-key]");
    near?.requestSubmit();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) {
    if (event.key !== "Escape") return;
    event.preventDefault(); // a search would be emptied
    return (event.target as HTMLElement).blur();
  }
  if (localStorage.getItem(OFF) && event.key !== "?") return;
  if (event.key === "j" || event.key === "k") return step(event.key === "j" ? 1 : -1);
  const target = buttonFor(event.key);
  if (!target) return;
  event.preventDefault();
  if (target instanceof HTMLFormElement) enter(target);
  else if (isTyping(target)) target.focus();
  else target.click();
});

// Whoever has just taken an item wants to fill it in. There is nothing of this name: to that the browser would go, and lose the focus.
const FILL = "#fill";
let isNewPage = true;
each<HTMLFormElement>("form[data-key]", (form) => {
  const isWanted = isNewPage ? location.hash === FILL : document.activeElement === document.body;
  if (isWanted) enter(form);
});
isNewPage = false;

each<HTMLInputElement>("input[data-keys]", (box) => {
  box.checked = !localStorage.getItem(OFF);
  box.addEventListener("change", () => {
    if (box.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "1");
    tell(say(box.checked ? "keys-on" : "keys-off"));
  });
});
