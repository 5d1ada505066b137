// What the API refuses, as people are told it: in words of the page's language where it has some for the code. The engine's own
// line follows unless those say all (`data-enough`), and stands alone where the page has no words.

export interface Problem {
  status: number;
  code: string;
  detail: string;
  errors?: Array<{ where: string; detail: string }>;
  findings?: Array<{ line: number; column: number; message: string }>;
}

/** A line of the engine, as a sentence; what begins with a name or a place of a form is left as it is. As page/problem.py does. */
export function sentence(line: string): string {
  const begun = /^[a-z]+ /.test(line) ? line.charAt(0).toUpperCase() + line.slice(1) : line;
  return /[.!?]$/.test(begun) || !begun ? begun : `${begun}.`;
}

/** The page's words, if it has some, and what they leave open. */
function told(problem: Problem): string[] {
  const known = document.querySelector<HTMLElement>(`#problems [data-code="${CSS.escape(problem.code)}"]`);
  if (!known?.textContent) return [sentence(problem.detail)];
  return "enough" in known.dataset ? [known.textContent] : [known.textContent, sentence(problem.detail)];
}

export function wordsFor(problem: Problem): string {
  return told(problem).join(" ");
}

/** The same in a place for it: each on a line of its own. */
export function show(place: HTMLElement, problem: Problem): void {
  const lines = told(problem).map((text) => Object.assign(document.createElement("span"), { textContent: text }));
  place.replaceChildren(...lines);
  place.hidden = false;
}
