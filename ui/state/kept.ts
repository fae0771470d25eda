/** Choices about how the page looks, and for as long as its tab is open who is signed in; nothing else is kept in the browser. */

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

/** "": there is none. */
export function keptSession(key: string): string {
  try {
    return sessionStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

/** "" forgets it. */
export function keepSession(key: string, session: string): void {
  try {
    if (session === "") sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, session);
  } catch {
    // storage is shut off: a reload asks again
  }
}
