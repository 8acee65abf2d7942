"""The probe `semantic`: moral questions in several wordings, rules of thumb behind the answers, how alike they are."""
