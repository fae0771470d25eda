/** A `*` and `?` glob over whole texts. Time is bounded by pattern length × text length, whatever the pattern. */
export function compileGlob(pattern: string): (text: string) => boolean {
  const glob = pattern.replace(/\*+/g, "*");
  return (text) => matches(glob, text);
}

function matches(glob: string, text: string): boolean {
  let at = 0;
  let star = -1; // the last `*` seen, and where its text ended when it was tried last
  let resume = 0;
  let from = 0;
  while (from < text.length) {
    if (glob[at] === "*") {
      star = at++;
      resume = from;
    } else if (at < glob.length && (glob[at] === "?" || glob[at] === text[from])) {
      at++;
      from++;
    } else if (star >= 0) {
      at = star + 1;
      from = ++resume;
    } else return false;
  }
  return at === glob.length || (at === glob.length - 1 && glob[at] === "*");
}
