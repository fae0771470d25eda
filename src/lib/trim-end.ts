/** The text without the characters of `ends` at its end, in linear time: `/x+$/` tries anew at every x of the text. */
export function trimEndOf(text: string, ends: string): string {
  let end = text.length;
  while (end > 0 && ends.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}
