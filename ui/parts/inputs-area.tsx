interface Props {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly rows?: number;
  readonly required?: boolean;
}

/** Several lines, such as links: text of machines, which runs from left to right. */
export function TextArea({ label, value, onInput, rows = 4, required = false }: Props) {
  return (
    <label class="field wide">
      <span>{label}</span>
      <textarea
        value={value}
        rows={rows}
        required={required}
        dir="ltr"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
