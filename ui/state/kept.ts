/** Choices about how the page looks; nothing else is kept in the browser. */

export function keptChoice(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function keepChoice(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // storage is shut off: the choice lasts as long as the page
  }
}
