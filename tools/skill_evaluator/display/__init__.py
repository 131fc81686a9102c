"""How anything is shown: text from outside made safe, tables, chart style and the wording of numbers."""
