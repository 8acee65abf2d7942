"""The probe `memory`: does a model know people, or does it recite a published table?"""
