// A dialog about many says how many these are by now: `data-counts` is what is asked, with the body of its form.
import { each, say } from "./part";
import { ask, bodyOf } from "./api";
import { wordsFor, type Problem } from "./problem";

each<HTMLElement>("[data-opens]", (button) => {
  button.addEventListener("click", () => {
    const place = document.getElementById(button.dataset["opens"] ?? "")?.querySelector<HTMLElement>("[data-counts]");
    if (place) void count(place);
  });
});

async function count(place: HTMLElement): Promise<void> {
  const form = place.closest("form");
  if (!form) return;
  try {
    const answer = (await ask("POST", place.dataset["counts"] ?? "", bodyOf(form))) as { count: number };
    place.textContent = say("counted", { count: answer.count.toLocaleString(document.documentElement.lang) });
  } catch (problem) {
    place.textContent = wordsFor(problem as Problem);
  }
}
