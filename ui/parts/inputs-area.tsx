interface Props {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly rows?: number;
  readonly required?: boolean;
  /** `auto`: what people write, in the direction of its first letters. */
  readonly dir?: "ltr" | "auto";
}

/** Several lines: as a rule text of machines, such as links, which runs from left to right. */
export function TextArea({ label, value, onInput, rows = 4, required = false, dir = "ltr" }: Props) {
  return (
    <label class="field wide">
      <span>{label}</span>
      <textarea
        value={value}
        rows={rows}
        required={required}
        dir={dir}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
