/** Of the links of a page, those to files beside it. */
export function linkedFiles(page: string): readonly string[] {
  return [...page.matchAll(/\]\((?![a-z]+:|#)([^)#\s]+)/g)].map(([, file]) => file ?? "");
}

/** Files and folders of a checkout or a build that a page names, as links or as code; patterns and what is made later not. */
export function namedFiles(page: string): readonly string[] {
  const code = [...page.matchAll(/`([\w.-]+(?:\/[\w.-]+)*\/?)`/g)]
    .map(([, text]) => text ?? "")
    .filter(
      (text) => /^(docs|deploy|examples|bench|scripts)\//.test(text) || /^[A-Z-]+\.(md|txt)$/.test(text),
    );
  return [...new Set([...linkedFiles(page), ...code])];
}
