// Checks as somebody types: a field says its type, and is told at once what would be right. The engine checks again.
import { numbers } from "./api";
import { each, say } from "./part";

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

const LIMIT = 2n ** 63n;

function wrong(field: Field): string {
  const text = field.value.trim();
  if (!text) return field.required ? say("check-required") : "";
  switch (field.dataset["type"]) {
    case "integer":
      if (!/^[+-]?\d+$/.test(text)) return say("check-integer");
      return BigInt(text) >= LIMIT || BigInt(text) < -LIMIT ? say("check-integer-large") : "";
    case "number":
      return isNumber(text) ? "" : say("check-number");
    case "numbers":
      return numbers(text).every(isNumber) ? "" : say("check-numbers");
    case "json":
      return isJson(text) ? "" : say("check-json");
    case "date":
    case "timestamp":
      if (field.validity.rangeOverflow || field.validity.rangeUnderflow) return say("check-year");
      return field.validity.badInput ? field.validationMessage : "";
    default:
      return field.validity.badInput ? field.validationMessage : "";
  }
}

function isNumber(text: string): boolean {
  return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function show(field: Field): void {
  const message = wrong(field);
  const place = document.getElementById(`${field.id}-check`);
  field.setCustomValidity(message);
  if (message) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
  if (place) place.textContent = message;
}

each<Field>("[data-type][id]", (field) => {
  let isTouched = false;
  field.addEventListener("input", () => {
    // An empty field that nobody has left yet is not wrong, only not there.
    if (isTouched || field.value) show(field);
    else field.setCustomValidity("");
  });
  field.addEventListener("blur", () => {
    isTouched = true;
    // What the engine refused stays marked until it is changed.
    const isRefused = field.getAttribute("aria-invalid") === "true" && !field.validity.customError;
    if (!isRefused) show(field);
  });
  field.addEventListener("invalid", () => show(field));
});
