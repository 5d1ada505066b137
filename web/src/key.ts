// The keyboard: j and k go through a list, and letters press the button that says so (`data-key="t"`).
//
// Letters do nothing while somebody types, nor when they are switched off (in the dialog that `?` opens).
import { each, tell, say } from "./part";

const OFF = "keys-off";

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function rows(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("[data-rows] [data-row]")];
}

function step(by: number): void {
  const all = rows();
  const here = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[here < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, here + by))];
  const target = next?.querySelector<HTMLElement>("a[href]") ?? next;
  target?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/** The row that has the focus is meant before the page. */
function buttonFor(key: string): HTMLElement | undefined {
  const fitting = `[data-key="${CSS.escape(key)}"]`;
  const row = document.activeElement?.closest("[data-row]");
  return row?.querySelector<HTMLElement>(fitting) ?? document.querySelector<HTMLElement>(`main ${fitting}, ${fitting}`) ?? undefined;
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
    (event.target as HTMLElement).closest("form")?.requestSubmit();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]") || (localStorage.getItem(OFF) && event.key !== "?")) return;
  if (event.key === "j" || event.key === "k") return step(event.key === "j" ? 1 : -1);
  const target = buttonFor(event.key);
  if (!target) return;
  event.preventDefault();
  if (isTyping(target)) target.focus();
  else target.click();
});

each<HTMLInputElement>("input[data-keys]", (box) => {
  box.checked = !localStorage.getItem(OFF);
  box.addEventListener("change", () => {
    if (box.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "1");
    tell(say(box.checked ? "keys-on" : "keys-off"));
  });
});
