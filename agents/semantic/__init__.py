"""The probe `semantic`: consistency of answers, and of their rules of thumb, to paraphrased moral questions."""
