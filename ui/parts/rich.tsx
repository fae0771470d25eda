/** A text in which what stands between backticks is code. */
export function Rich({ text }: { readonly text: string }) {
  return <>{text.split("`").map((part, at) => (at % 2 === 0 ? part : <code key={at}>{part}</code>))}</>;
}
